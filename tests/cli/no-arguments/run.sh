whyslow
