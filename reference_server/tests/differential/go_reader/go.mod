module go_reader

go 1.21
