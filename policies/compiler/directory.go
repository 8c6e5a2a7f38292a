package compiler

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// maxDirectoryBytes limits the total size of the files in a policy directory.
const maxDirectoryBytes = 8 << 20

// ReadDirectory reads and parses an organisation's own Rego and data. The zero Path means that there is no directory.
func ReadDirectory(org string, dir files.Path) (OrgRego, error) {
	d, err := OpenDirectory(org, dir)
	if err != nil || d == nil {
		return OrgRego{}, err
	}
	return d.Parse(org)
}

// Directory holds the unparsed files of an organisation's own Rego and data.
type Directory struct {
	dir   files.Path
	files map[string][]byte
}

// OpenDirectory reads the files of a directory. It returns nil for the zero Path.
func OpenDirectory(org string, dir files.Path) (*Directory, error) {
	if dir.IsZero() {
		return nil, nil //nolint:nilnil // there is none
	}
	return openDirectory(org, dir, isPolicyFile)
}

// openDirectory reads the files whose base name is wanted.
func openDirectory(org string, dir files.Path, wanted func(base string) bool) (*Directory, error) {
	texts, err := dir.Tree(wanted, maxDirectoryBytes)
	if err != nil {
		return nil, &policyconfig.Error{Org: org, File: dir.String(), Path: "rego", Message: "policy directory: " + err.Error()}
	}
	return &Directory{dir, texts}, nil
}

// Rego returns the contents of the Rego files by name, as used in errors and in OrgRego.
func (d *Directory) Rego() map[string]string {
	out := map[string]string{}
	for name, text := range d.files {
		if strings.HasSuffix(name, ".rego") {
			out[d.shown(name)] = string(text)
		}
	}
	return out
}

// shown returns the name of a file as used in errors.
func (d *Directory) shown(name string) string {
	return filepath.Join(d.dir.String(), filepath.FromSlash(name))
}

// Holds reports whether o was parsed from the files of d.
func (d *Directory) Holds(o OrgRego) bool {
	return o.digest != "" && o.digest == digestOf(d.files) && maps.Equal(o.sources, d.Rego())
}

// Parse parses the files. It returns an error that joins all faults it finds, each a *policyconfig.Error.
func (d *Directory) Parse(org string) (OrgRego, error) {
	o, err := d.parse(org)
	if err == nil {
		err = o.checkPlacement(org)
	}
	if err == nil && len(o.policies()) == 0 {
		err = &policyconfig.Error{Org: org, File: d.dir.String(), Path: "rego", Message: "contains no policy, " + PolicyForms}
	}
	return o, err
}

func isPolicyFile(base string) bool {
	switch base {
	case "data.json", "data.yaml", "data.yml":
		return true
	default:
		return strings.HasSuffix(base, ".rego") && !strings.HasSuffix(base, "_test.rego")
	}
}

// parse parses the files. Data files are mounted at the path of their directory, as in OPA. If parse returns an error, it also returns the
// part that could be parsed.
func (d *Directory) parse(org string) (OrgRego, error) {
	o := newOrgRego()
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		text, file := d.files[name], d.shown(name)
		if !strings.HasSuffix(name, ".rego") {
			if err := o.addData(name, text); err != nil {
				faults = append(faults, &policyconfig.Error{Org: org, File: file, Message: err.Error()})
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
	o.digest = digestOf(d.files)
	return o, nil
}

// digestOf returns the digest of the files' contents.
func digestOf(files map[string][]byte) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%d:%s%d:%s", len(name), name, len(files[name]), files[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}
