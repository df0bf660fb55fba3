module app

go 1.22
