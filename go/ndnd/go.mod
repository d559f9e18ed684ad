module namecast.dev/interop/ndnd

go 1.24.0

require github.com/named-data/ndnd v1.5.3
