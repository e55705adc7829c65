whyslow docter
