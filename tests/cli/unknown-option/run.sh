whyslow help --mna; echo $?; whyslow --quick; echo $?; whyslow help --completion tcsh
