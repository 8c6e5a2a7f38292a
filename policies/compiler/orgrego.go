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

// OrgRego is an organisation's own Rego and data, from a directory or a bundle. The zero OrgRego contains neither.
type OrgRego struct {
	modules map[string]*ast.Module // by file; copied before use
	sources map[string]string      // by file
	data    map[string]any
	digest  string
}

// ownPackage is the package prefix of an organisation's own policies: policies.<name>.
const ownPackage = "policies."

func newOrgRego() OrgRego {
	return OrgRego{modules: map[string]*ast.Module{}, sources: map[string]string{}, data: map[string]any{}}
}

// Parse parses the Rego files and the data of a bundle. digest identifies their contents. Test files are parsed and then excluded. Parse
// returns an error that joins all faults it finds, each a *policyconfig.Error.
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
	return o, o.checkPlacement(org)
}

// With returns a copy of o with one more file, which replaces the files of the same policy. It also returns the name of the policy. Faults
// are returned as a *policyconfig.Error.
func (o OrgRego) With(org, file, text string) (with OrgRego, policy string, err error) {
	draft := newOrgRego()
	if err := draft.addModule(org, file, text); err != nil {
		return OrgRego{}, "", err
	}
	policy, ok := policyOfPackage(draft.modules[file])
	if !ok || draft.policies()[policy].rules == nil {
		return OrgRego{}, "", &policyconfig.Error{Org: org, File: file, Message: "contains no policy, " + PolicyForms}
	}
	with = OrgRego{modules: maps.Clone(draft.modules), sources: maps.Clone(draft.sources), data: o.data, digest: o.digest + "|" + text}
	for name, m := range o.modules {
		if of, isPolicy := policyOfPackage(m); !isPolicy || of != policy {
			with.modules[name], with.sources[name] = m, o.sources[name]
		}
	}
	return with, policy, with.checkPlacement(org)
}

// Module returns a copy of a parsed file, or nil.
func (o OrgRego) Module(file string) *ast.Module {
	if m := o.modules[file]; m != nil {
		return m.Copy()
	}
	return nil
}

// Digest identifies the contents; it is "" for the zero OrgRego.
func (o OrgRego) Digest() string { return o.digest }

// Sources returns the contents of the Rego files by name.
func (o OrgRego) Sources() map[string]string { return maps.Clone(o.sources) }

// Data returns the data. It must not be modified.
func (o OrgRego) Data() map[string]any { return o.data }

// Policies returns the names of the policies, sorted.
func (o OrgRego) Policies() []string { return slices.Sorted(maps.Keys(o.policies())) }

// refersToLibrary reports whether the Rego refers to packages of the library, or to data with an unknown path.
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

// taken reports whether there is data at a path, or a value without members on the way to it.
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

// MissingTeams reports data objects that are indexed by a value of the call and have entries for some of the teams but not for all.
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
				out.If(slices.ContainsFunc(teams, has) && !has(team), "rego", "data.%s does not contain team %q", strings.Join(path, "."), team)
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
		return &policyconfig.Error{Org: org, File: file, Message: "file is empty"}
	}
	if name := packageName(m) + "."; strings.HasPrefix(name, supportPackage) {
		return faultAt(org, "", m.Package.Location, "package "+packageName(m)+" is reserved for the library; use policies.<name>")
	}
	o.modules[file], o.sources[file] = m, text
	return nil
}

// addData mounts a data file. Two files must not define the same path.
func (o *OrgRego) addData(name string, text []byte) error {
	v, err := readData(name, text)
	if err != nil {
		return fmt.Errorf("data is not valid: %w", err)
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
		return errors.New("data is not an object")
	}
	if _, reserved := object[reservedRoot]; reserved {
		return errors.New("data.tollgate is reserved for the library")
	}
	return merge(o.data, object, "")
}

// readData parses a data file: JSON, or YAML with the rules of the configuration. Duplicate names are errors in both.
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
			return fmt.Errorf("data%s.%s is defined twice", at, k)
		}
		if err := merge(a, b, at+"."+k); err != nil {
			return err
		}
	}
	return nil
}
