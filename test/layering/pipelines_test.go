package layering_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every pipeline's error is used. If the handshake of a connection fails, go-redis sets no error
// on the commands of a pipeline: the error of Exec is the only sign that nothing was read or written.
func TestErrorsOfPipelinesAreUsed(t *testing.T) {
	t.Parallel()
	files, pipelines := token.NewFileSet(), 0
	isPipeline := func(n ast.Expr) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return false
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		return ok && slices.Contains([]string{"Pipelined", "TxPipelined", "Exec"}, method.Sel.Name)
	}
	for _, dir := range []string{"cmd", "config", "gateway", "policies", "ratelimit", "translate"} {
		err := filepath.WalkDir("../../"+dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.ExprStmt:
					if isPipeline(n.X) {
						t.Errorf("%s: the error of a pipeline is dropped", files.Position(n.Pos()))
					}
				case *ast.AssignStmt:
					if len(n.Rhs) != 1 || !isPipeline(n.Rhs[0]) {
						return true
					}
					pipelines++
					if last, ok := n.Lhs[len(n.Lhs)-1].(*ast.Ident); ok && last.Name == "_" {
						t.Errorf("%s: the error of a pipeline is dropped", files.Position(n.Pos()))
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if pipelines < 20 {
		t.Errorf("found %d pipelines, want all of them", pipelines)
	}
}
