package load

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

	"github.com/tollgate-dev/tollgate/policies/section"
)

// maxDirectoryBytes bounds the files of a policy directory.
const maxDirectoryBytes = 8 << 20

// ReadDirectory reads an organisation's own Rego and data. "" is no directory.
func ReadDirectory(org, dir string) (OrgRego, error) {
	if dir == "" {
		return OrgRego{}, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return OrgRego{}, &section.Error{Org: org, File: dir, Path: "rego", Message: "policy directory: " + err.Error()}
	}
	defer func() { _ = root.Close() }()
	files, err := readFiles(root.FS(), isPolicyFile)
	if err != nil {
		return OrgRego{}, &section.Error{Org: org, File: dir, Path: "rego", Message: err.Error()}
	}
	o, err := parseOrgRego(org, func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }, files)
	if err == nil {
		err = o.misplaced(org)
	}
	if err == nil && len(o.policies()) == 0 {
		err = &section.Error{Org: org, File: dir, Path: "rego", Message: "holds no policy, " + WhatIsAPolicy}
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

// parseOrgRego parses the files of a directory. Data files are mounted by the path of their
// directory, as OPA does. Beside an error it returns what could be parsed.
func parseOrgRego(org string, shown func(string) string, files map[string][]byte) (OrgRego, error) {
	o := newOrgRego()
	h := sha256.New()
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := files[name]
		fmt.Fprintf(h, "%d:%s%d:%s", len(name), name, len(text), text)
		file := shown(name)
		if !strings.HasSuffix(name, ".rego") {
			if err := o.addData(name, text); err != nil {
				faults = append(faults, &section.Error{Org: org, File: file, Message: err.Error()})
			}
			continue
		}
		if err := o.addModule(org, file, string(text)); err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) > 0 {
		return o, errors.Join(faults...)
	}
	o.digest = hex.EncodeToString(h.Sum(nil))
	return o, nil
}
