package compiler

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/util"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
	"github.com/tollgate-dev/tollgate/policies/regosandbox"
)

// OrgRego is an organisation's own Rego and data, from a directory or a bundle. The
// zero OrgRego has neither.
type OrgRego struct {
	modules map[string]*ast.Module // by file; copied before use
	sources map[string]string      // by file
	data    map[string]any
	digest  string
}

// ownPackage is where an organisation's own policies live: policies.<name>.
const ownPackage = "policies."

func newOrgRego() OrgRego {
	return OrgRego{modules: map[string]*ast.Module{}, sources: map[string]string{}, data: map[string]any{}}
}

// Parse reads the Rego, by file, and the data of a bundle. digest names their
// content. Files of tests are parsed and left out. Its error joins all faults, each an
// *Error.
func Parse(org, digest string, rego map[string]string, data map[string]any) (OrgRego, error) {
	o := newOrgRego()
	o.digest = digest
	var faults []error
	for _, file := range slices.Sorted(maps.Keys(rego)) {
		into := &o
		if strings.HasSuffix(file, "_test.rego") {
			tests := newOrgRego()
			into = &tests
		}
		if err := into.addModule(org, file, rego[file]); err != nil {
			faults = append(faults, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		if name == reservedRoot {
			faults = append(faults, &policyconfig.Error{Org: org, Message: "data.tollgate is reserved for the library"})
			continue
		}
		v, err := policyinput.Plain(data[name])
		if err != nil {
			faults = append(faults, &policyconfig.Error{Org: org, Message: "data." + name + ": " + err.Error()})
		}
		o.data[name] = v
	}
	if len(faults) > 0 {
		return OrgRego{}, errors.Join(faults...)
	}
	return o, o.misplaced(org)
}

// With returns the same with one more file, in the place of the files of the same policy. policy is the one that the file is of. Its error is
// an *Error.
func (o OrgRego) With(org, file, text string) (with OrgRego, policy string, err error) {
	draft := newOrgRego()
	if err := draft.addModule(org, file, text); err != nil {
		return OrgRego{}, "", err
	}
	policy, ok := policyOfPackage(draft.modules[file])
	if !ok || draft.policies()[policy].rules == nil {
		return OrgRego{}, "", &policyconfig.Error{Org: org, File: file, Message: "holds no policy, " + PolicyForms}
	}
	with = OrgRego{modules: maps.Clone(draft.modules), sources: maps.Clone(draft.sources), data: o.data, digest: o.digest + "|" + text}
	for name, m := range o.modules {
		if of, isPolicy := policyOfPackage(m); !isPolicy || of != policy {
			with.modules[name], with.sources[name] = m, o.sources[name]
		}
	}
	return with, policy, with.misplaced(org)
}

// Module returns a copy of a file as it was parsed, nil for none.
func (o OrgRego) Module(file string) *ast.Module {
	if m := o.modules[file]; m != nil {
		return m.Copy()
	}
	return nil
}

// Digest names the content; "" for none.
func (o OrgRego) Digest() string { return o.digest }

// Sources returns the Rego, by file.
func (o OrgRego) Sources() map[string]string { return maps.Clone(o.sources) }

// Data returns the data beside it, which is not to be changed.
func (o OrgRego) Data() map[string]any { return o.data }

// Policies lists the names of the policies by name.
func (o OrgRego) Policies() []string { return slices.Sorted(maps.Keys(o.policies())) }

// refersToLibrary reports whether anything in the organisation's Rego refers to packages of
// the library, or to data without saying where.
func (o OrgRego) refersToLibrary() bool {
	found := false
	for _, m := range o.modules {
		ast.WalkRefs(m, func(ref ast.Ref) bool {
			if ref.HasPrefix(ast.DefaultRootRef) {
				path := elements(ref)
				found = found || len(path) == 0 || path[0] == reservedRoot
			}
			return found
		})
	}
	return found
}

// taken reports whether there is data at a path, or a value on the way that has no
// members.
func (o OrgRego) taken(path []string) (bool, error) {
	var v any = o.data
	for _, name := range path {
		object, ok := v.(map[string]any)
		if !ok {
			return true, nil
		}
		if v, ok = object[name]; !ok {
			return false, nil
		}
	}
	return true, nil
}

// MissingTeams reports data that has an entry for some of the teams, is looked up by what
// only a call says, and has none for others.
func (o OrgRego) MissingTeams(teams []string) []error {
	var out fault.Found
	seen := map[string]bool{}
	for _, file := range slices.Sorted(maps.Keys(o.modules)) {
		ast.WalkRefs(o.modules[file], func(ref ast.Ref) bool {
			path := elements(ref)
			if !ref.HasPrefix(ast.DefaultRootRef) || len(path)+1 >= len(ref) || seen[strings.Join(path, ".")] {
				return false
			}
			seen[strings.Join(path, ".")] = true
			found, _ := policyinput.Lookup(o.data, path)
			entries, _ := found.(map[string]any)
			has := func(team string) bool { return entries[team] != nil }
			for _, team := range teams {
				out.If(slices.ContainsFunc(teams, has) && !has(team), "rego", "data.%s has no entry for team %q", strings.Join(path, "."), team)
			}
			return false
		})
	}
	return out
}

func (o *OrgRego) addModule(org, file, text string) error {
	m, err := ast.ParseModuleWithOpts(file, text, ast.ParserOptions{
		Capabilities: regosandbox.Capabilities(), ProcessAnnotation: true, RegoVersion: ast.RegoV1,
	})
	if err != nil {
		return LocateErrors(org, err)
	}
	if m == nil {
		return &policyconfig.Error{Org: org, File: file, Message: "the file is empty"}
	}
	if name := packageName(m) + "."; strings.HasPrefix(name, supportPackage) {
		return &policyconfig.Error{
			Org: org, File: file, Row: m.Package.Location.Row, Col: m.Package.Location.Col,
			Message: "package " + packageName(m) + " is reserved for the library; use policies.<name>",
		}
	}
	o.modules[file], o.sources[file] = m, text
	return nil
}

// addData mounts a data file. Two files may not give one path.
func (o *OrgRego) addData(name string, text []byte) error {
	v, err := readData(name, text)
	if err != nil {
		return fmt.Errorf("not valid data: %w", err)
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

// readData reads a data file: JSON, or YAML by the rules of the configuration. A name given
// twice is a fault in both.
func readData(name string, text []byte) (v any, err error) {
	if filepath.Ext(name) == ".json" {
		if err = json.Unmarshal(text, new(jsontext.Value)); err == nil {
			err = util.UnmarshalJSON(text, &v)
		}
		return v, err
	}
	if err = strictyaml.Decode(filepath.Base(name), text, &v); err != nil {
		return nil, err
	}
	return policyinput.Plain(v)
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
