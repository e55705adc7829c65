whyslow help nonsense
