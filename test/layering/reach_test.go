package layering_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// opens are the functions that open files, and makes the types that dial.
var (
	opens = map[string][]string{
		"os":  {"Open", "OpenFile", "ReadFile", "OpenRoot", "OpenInRoot", "DirFS", "CopyFS", "Create", "CreateTemp", "WriteFile"},
		"tls": {"LoadX509KeyPair"},
	}
	makes = map[string][]string{"http": {"Client", "Transport"}, "net": {"Dialer"}}
)

// exceptions are the files that may open files or dial by themselves, and why. Files that a configuration names are read by package
// config/files, and servers that an organisation names are reached by package config/egress.
var exceptions = map[string]string{
	"policies/isolate/process.go": "the memory of a child process, in /proc",
	"policies/isolate/serve.go":   "the child's own score for the out-of-memory killer, in /proc",
	"config/files/path.go":        "the function that opens everything else",
	"config/files/read.go":        "the function that opens everything else",

	"cmd/tollgate/audit.go":         "arguments of a command: pipes are files there",
	"cmd/tollgate/explain.go":       "arguments of a command: pipes are files there",
	"cmd/tollgate/keys_import.go":   "arguments of a command: pipes are files there",
	"cmd/tollgate/login.go":         "a person's login: an issuer that is an argument, and the file that has the token",
	"cmd/tollgate/platform.go":      "arguments of a command: pipes are files there",
	"cmd/tollgate/platform_diff.go": "an argument of a command: a pipe is a file there, and a server is the user's",
	"cmd/tollgate/policy_build.go":  "arguments of a command: pipes are files there",
	"cmd/tollgate/policy_replay.go": "arguments of a command: pipes are files there",
	"cmd/tollgate/heap.go":          "the kernel's files below /proc and /sys",
	"cmd/tollgate/dev/state.go":     "its own files below .tollgate, which it writes",
	"gateway/listen/reserve.go":     "/dev/null, to hold descriptors",

	"cmd/tollgate/envoy.go":       "writes where its user says",
	"cmd/tollgate/policy_docs.go": "writes where its user says",
	"cmd/tollgate/demo_envoy.go":  "writes a temporary file of its own",
	"policies/authoring/check.go": "rewrites files that its user names, with --fix",
	"gateway/alerts/reports.go":   "writes reports into the directory of the main configuration",

	"config/egress/egress.go":        "the clients for servers outside, with their guards",
	"gateway/upstream/upstream.go":   "the client of the platform",
	"ratelimit/redisstore/client.go": "the client of the store",
	"policies/decisionlog/log.go":    "the service of the main configuration",
	"cmd/tollgate/caller.go":         "a command asks a gateway",
	"cmd/tollgate/client.go":         "a command asks a gateway",
	"cmd/tollgate/dev.go":            "a command asks a gateway",
	"cmd/tollgate/health.go":         "a command asks a gateway",
}

// A file that a configuration names could be a named pipe, a device or endless, and a URL of an organisation could lead to the gateway's
// own listeners. So only two packages open and dial.
func TestFilesAndServersAreReachedInOnePlace(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, p := range list(t) {
		if p.ImportPath == "test" || strings.HasPrefix(p.ImportPath, "test/") {
			continue
		}
		for name, f := range parse(t, p.Dir, p.GoFiles) {
			file := p.ImportPath + "/" + name
			ast.Inspect(f, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				pkg, ok := s.X.(*ast.Ident)
				if !ok || !slices.Contains(opens[pkg.Name], s.Sel.Name) && !slices.Contains(makes[pkg.Name], s.Sel.Name) {
					return true
				}
				used[file] = true
				if exceptions[file] == "" && !isType(f, s) {
					t.Errorf("%s uses %s.%s: read files by package config/files, and reach servers by package config/egress", file, pkg.Name, s.Sel.Name)
				}
				return true
			})
		}
	}
	for file := range exceptions {
		if !used[file] {
			t.Errorf("%s is an exception, and opens nothing", file)
		}
	}
}

// isType reports whether a selector names the type of a parameter, a field or a variable, which makes nothing.
func isType(f *ast.File, s *ast.SelectorExpr) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		star, ok := n.(*ast.StarExpr)
		found = found || ok && star.X == s
		return !found
	})
	return found
}
