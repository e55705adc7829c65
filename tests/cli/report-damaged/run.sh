# Damage is named by place; nothing crashes, nothing is made up.
damage() {
    make-recording plain bad.whyslow
    sqlite3 bad.whyslow "$1"
    whyslow report bad.whyslow "${@:2}" > /dev/null
    echo "status $?" >&2
    rm bad.whyslow
}
damage "UPDATE location SET function = 77 WHERE frame = 1"
damage "DELETE FROM function WHERE id = 3"
damage "UPDATE stack SET parent = id WHERE id = 3"
damage "UPDATE total SET stack = 4000000 WHERE stack = 2"
damage "UPDATE total SET weight = -5"
damage "UPDATE frame SET kind = 'sofa'"
damage "UPDATE thread SET process = 9"
damage "UPDATE series SET unit = 'parsec'"
damage "UPDATE source_line SET file = 4000" --lines
damage "UPDATE instruction SET image = 40" --annotate f4
damage "UPDATE counter SET value = 'many'"
damage "UPDATE chunk SET data = x'00112233'" --time 0..1
damage "DROP TABLE thread"
make-recording plain short.whyslow
truncate -s 40000 short.whyslow
whyslow report short.whyslow > /dev/null
echo "status $?" >&2
