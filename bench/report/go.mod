module github.com/heavykeeper-go/heavykeeper/bench/report

go 1.26.0

require (
	github.com/heavykeeper-go/heavykeeper v0.0.0
	github.com/heavykeeper-go/heavykeeper/bench/peers v0.0.0
	gonum.org/v1/plot v0.17.0
)

require (
	codeberg.org/go-fonts/liberation v0.5.0 // indirect
	codeberg.org/go-latex/latex v0.2.0 // indirect
	codeberg.org/go-pdf/fpdf v0.11.1 // indirect
	git.sr.ht/~sbinet/gg v0.7.0 // indirect
	github.com/ajstarks/svgo v0.0.0-20211024235047-1546f124cd8b // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/go-kratos/aegis v0.2.0 // indirect
	github.com/golang/freetype v0.0.0-20170609003504-e2365dfdc4a0 // indirect
	github.com/golang/groupcache v0.0.0-20210331224755-41bb18bfe9da // indirect
	github.com/twmb/murmur3 v1.1.6 // indirect
	github.com/tylertreat/BoomFilters v0.0.0-20251001182300-5b3723cc64ae // indirect
	golang.org/x/exp v0.0.0-20261113113407-e3970619a1a4 // indirect
	golang.org/x/image v0.30.0 // indirect
	golang.org/x/text v0.28.0 // indirect
)

replace github.com/heavykeeper-go/heavykeeper => ../..

replace github.com/heavykeeper-go/heavykeeper/bench/peers => ../peers
