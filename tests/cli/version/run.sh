whyslow --version
