module github.com/heavykeeper-go/heavykeeper/tmc

go 1.26.0

replace github.com/heavykeeper-go/heavykeeper => ../
