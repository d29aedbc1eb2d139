module github.com/heavykeeper-go/heavykeeper/hotspot/prom

go 1.26.0

replace github.com/heavykeeper-go/heavykeeper => ../..
