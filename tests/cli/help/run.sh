whyslow --help && whyslow help help
