module httpmark/application

go 1.26.0
