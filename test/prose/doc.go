// Package prose measures the words of the project: pages, comments and messages. It counts sentence patterns that readers stumble over, in
// comparison with net/http, and lists the public names, so that a rename cannot be missing from the changelog. It does not know grammar.
//
//	go test ./test/prose -run TestList -v    # all log messages, problem texts, errors, setting descriptions and help texts
//	go test ./test/prose -update             # lower the allowances in testdata
//	go test ./cmd/tollgate -run TestCommandNames -update    # rewrite testdata/commands.txt
package prose
