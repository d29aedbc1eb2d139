.PHONY: bench test ci

bench: ## compare with Count-Min on built-in streams
	go test -bench . ./bench

test:
	go test ./...

ci:
	bash .ci/run
