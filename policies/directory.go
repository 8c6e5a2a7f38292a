package policies

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/open-policy-agent/opa/v1/ast"
)

// maxDirectoryBytes bounds what a policy directory may hold.
const maxDirectoryBytes = 8 << 20

// readDirectory reads an organisation's own Rego and data. "" is no directory.
func readDirectory(org, dir string) (own, error) {
	if dir == "" {
		return own{}, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return own{}, &LoadError{Org: org, File: dir, Message: "policy directory: " + err.Error()}
	}
	defer func() { _ = root.Close() }()
	files, err := readFiles(root.FS(), isPolicyFile)
	if err != nil {
		return own{}, &LoadError{Org: org, File: dir, Message: err.Error()}
	}
	o, err := parseOwn(org, func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }, files)
	if err == nil {
		err = o.misplaced(org)
	}
	if err == nil && len(o.policies()) == 0 {
		err = &LoadError{Org: org, File: dir, Message: "holds no policy, " + whatIsAPolicy}
	}
	return o, err
}

// readFiles reads the wanted files below a directory, hidden ones left out.
func readFiles(fsys fs.FS, wanted func(base string) bool) (map[string][]byte, error) {
	files := map[string][]byte{}
	total := 0
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if strings.HasPrefix(d.Name(), ".") && name != "." {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() || !wanted(d.Name()) {
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		if total += len(text); total > maxDirectoryBytes {
			return fmt.Errorf("the files are larger than %d bytes together", maxDirectoryBytes)
		}
		files[name] = text
		return nil
	})
	return files, err
}

func isPolicyFile(base string) bool {
	switch base {
	case "data.json", "data.yaml", "data.yml":
		return true
	default:
		return strings.HasSuffix(base, ".rego") && !strings.HasSuffix(base, "_test.rego")
	}
}

// parseOwn parses what a directory held. Data files are mounted by the path of
// their directory, as OPA does. Beside an error it returns what could be parsed.
func parseOwn(org string, shown func(string) string, files map[string][]byte) (own, error) {
	o := own{modules: map[string]*ast.Module{}, sources: map[string]string{}, data: map[string]any{}}
	h := sha256.New()
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := files[name]
		fmt.Fprintf(h, "%d:%s%d:%s", len(name), name, len(text), text)
		file := shown(name)
		if !strings.HasSuffix(name, ".rego") {
			if err := o.addData(name, text); err != nil {
				faults = append(faults, &LoadError{Org: org, File: file, Message: err.Error()})
			}
			continue
		}
		if err := o.addModule(org, file, string(text)); err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) > 0 {
		return o, joinFaults(faults)
	}
	o.digest = hex.EncodeToString(h.Sum(nil))
	return o, nil
}

func (o *own) addModule(org, file, text string) error {
	m, err := ast.ParseModuleWithOpts(file, text, ast.ParserOptions{
		Capabilities: Capabilities(), ProcessAnnotation: true, RegoVersion: ast.RegoV1,
	})
	if err != nil {
		return loadErrors(org, err, func(string) string { return "" })
	}
	if m == nil {
		return &LoadError{Org: org, File: file, Message: "the file is empty"}
	}
	if name := packageName(m) + "."; strings.HasPrefix(name, supportPackage) {
		return &LoadError{
			Org: org, File: file, Row: m.Package.Location.Row, Col: m.Package.Location.Col,
			Message: "package " + packageName(m) + " is reserved for the library; use policies.<name>",
		}
	}
	o.modules[file], o.sources[file] = m, text
	return nil
}

// addData mounts a data file. Two files may not give one path.
func (o *own) addData(name string, text []byte) error {
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil { // JSON is YAML
		return fmt.Errorf("not valid data: %w", err)
	}
	v, err := plain(v)
	if err != nil {
		return err
	}
	var path []string
	if dir := filepath.ToSlash(filepath.Dir(name)); dir != "." {
		path = strings.Split(dir, "/")
	}
	for _, name := range slices.Backward(path) {
		v = map[string]any{name: v}
	}
	object, ok := v.(map[string]any)
	if !ok {
		return errors.New("the data is not an object")
	}
	if _, reserved := object[reservedRoot]; reserved {
		return errors.New("data.tollgate is reserved for the library")
	}
	return merge(o.data, object, "")
}

func merge(into, from map[string]any, at string) error {
	for _, k := range slices.Sorted(maps.Keys(from)) {
		have, taken := into[k]
		if !taken {
			into[k] = from[k]
			continue
		}
		a, okA := have.(map[string]any)
		b, okB := from[k].(map[string]any)
		if !okA || !okB {
			return fmt.Errorf("data%s.%s is given twice", at, k)
		}
		if err := merge(a, b, at+"."+k); err != nil {
			return err
		}
	}
	return nil
}
