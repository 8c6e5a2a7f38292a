package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// orgFile is a file that defines one organisation.
type orgFile struct {
	path string
	data []byte
	err  error // error of reading the file
}

// orgFiles holds the accepted organisation files, by path.
type orgFiles map[string]*orgPart

// orgPart is an accepted organisation file with its decoded section.
type orgPart struct {
	data   []byte
	digest digest // of data
	// main is the digest of the main file that the section was checked against.
	main      digest
	positions *strictyaml.Positions
	// made is the complete section, including the values of secrets. It is nil if the organisation has key files.
	made *settings.Org
}

// isReusable reports whether the section of a file in the previous configuration can be reused.
func (l *Loaded) isReusable(p *orgPart, f *orgFile) bool {
	if p == nil || p.made == nil || p.main != l.main || f.err != nil || !bytes.Equal(p.data, f.data) || p.made.CheckDestinations() != nil {
		return false
	}
	read := l.secretReader(p.made)
	return strictyaml.Each(p.made, func(s *strictyaml.Secret) error { return s.CheckCurrent(l.from.Env, read) }) == nil
}

// storeOrgs stores the sections of organisation files, so that the next configuration can reuse them.
func (l *Loaded) storeOrgs() {
	for i := range l.Config.Orgs {
		o := &l.Config.Orgs[i]
		part := l.files[o.File]
		if part == nil || part.made != nil || o.Policies.KeepOnFailure || len(o.KeyFiles) > 0 {
			continue
		}
		o.CachedText = new(strictyaml.TextCache)
		made := *o // a pointer into the list would keep the whole list in memory
		part.made = &made
	}
}

// readOrgFiles reads the files that match the pattern of organisation files, and adds the pattern to the inputs. It reports a fault for a
// symbolic link that leads out of the directory, and for a match that is not a regular file.
func (l *Loaded) readOrgFiles(dir string) ([]orgFile, error) {
	pattern := beside(dir, l.Config.OrgsFiles)
	if l.Config.OrgsFiles == "" {
		return nil, nil
	}
	dir = filepath.Dir(pattern)
	if strings.ContainsAny(dir, "*?[\\") {
		return nil, fault.Errorf("orgs_files", "must not contain a pattern in the directory, got %s", dir)
	}
	names, err := files.WithTimeout("open", dir, func() ([]string, error) {
		if _, err := os.ReadDir(dir); err != nil {
			return nil, err
		}
		return filepath.Glob(pattern)
	})
	if err != nil {
		return nil, fault.At("orgs_files", err)
	}
	l.Inputs.pattern(pattern)
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(filepath.Base(name), ".") }) // files of editors
	found := make([]orgFile, len(names))
	for i, name := range names {
		found[i].path = name
		found[i].data, found[i].err = l.readOrgFile(dir, name)
	}
	return found, nil
}

// readOrgFile returns the content of an organisation file. Unless Reread is set, it does not read a file that is unchanged since the
// previous configuration. It never reads a rejected file again: the digest of the rejected content stays in the inputs, so that a later
// correction counts as a change.
func (l *Loaded) readOrgFile(dir, name string) ([]byte, error) {
	if l.refused[name] != "" {
		return nil, nil
	}
	if before := l.from.Previous; before != nil && !l.from.Reread {
		part := before.files[name]
		if part != nil && part.digest == before.Inputs.found[name].digest && l.Inputs.reuse(name, &before.Inputs) {
			return part.data, nil
		}
	}
	return l.readFor(&settings.Org{File: name}, files.ConfinedPath(dir, filepath.Base(name)), strictyaml.MaxSize)
}

// includeOrgs adds the organisations of files to the organisations of the main file. It adds unchanged files first: if two files define an
// entry that must be unique, the fault is then reported for the changed file. It returns syntax and decoding faults in form, and all other
// faults in other.
func (l *Loaded) includeOrgs(found []orgFile) (form strictyaml.Errors, other error) {
	var before orgFiles
	if l.from.Previous != nil {
		before = l.from.Previous.files
	}
	var unchanged, changed []orgFile
	for _, f := range found {
		if part := before[f.path]; part != nil && bytes.Equal(part.data, f.data) {
			unchanged = append(unchanged, f)
		} else {
			changed = append(changed, f)
		}
	}
	l.files = make(orgFiles, len(found))
	l.Config.Orgs = slices.Grow(l.Config.Orgs, len(found))
	for _, f := range append(unchanged, changed...) {
		if l.refused[f.path] != "" {
			continue
		}
		i := len(l.Config.Orgs)
		if part := before[f.path]; l.isReusable(part, &f) {
			l.files[f.path] = part
			l.Config.Orgs = append(l.Config.Orgs, *part.made)
			l.Config.Orgs[i].Reused = true
			l.positions.SetIncluded(fault.Index("orgs", i), part.positions)
			continue
		}
		l.Config.Orgs = append(l.Config.Orgs, settings.Org{File: f.path})
		o, at := &l.Config.Orgs[i], fault.Index("orgs", i)
		positions, err := l.positions.Include(f.path, f.data, at, o)
		faults, _ := errors.AsType[strictyaml.Errors](err)
		if f.err != nil {
			faults = strictyaml.Errors{{File: f.path, Path: at, Message: files.Cause(f.err).Error()}}
		}
		o.File, o.Untrusted = f.path, len(faults) > 0
		l.files[f.path] = &orgPart{data: f.data, digest: l.Inputs.found[f.path].digest, main: l.main, positions: positions}
		form = append(form, faults...)
		if len(faults) == 0 {
			err := l.Config.OrgBounds.Check(o)
			other = errors.Join(other, fault.At(at, err))
			o.Untrusted = err != nil
		}
	}
	return form, other
}

// resolveSecrets resolves secrets. It leaves a secret that an organisation may not name unresolved.
func (l *Loaded) resolveSecrets() error {
	return l.eachSection(func(section any, o *settings.Org) error {
		return strictyaml.Each(section, func(s *strictyaml.Secret) error { return s.Resolve(l.from.Env, l.secretReader(o)) })
	})
}

// eachSection calls do for the configuration without its organisations, with a zero Org, and for each organisation that is trusted and not
// reused. It joins the errors.
func (l *Loaded) eachSection(do func(section any, o *settings.Org) error) error {
	orgs := l.Config.Orgs
	l.Config.Orgs = nil
	errs := []error{do(&l.Config, new(settings.Org))}
	l.Config.Orgs = orgs
	for i := range orgs {
		if o := &orgs[i]; !o.Untrusted && !o.Reused {
			errs = append(errs, fault.At(fault.Index("orgs", i), do(o, o)))
		}
	}
	return errors.Join(errs...)
}

// restoreOrgs adds the sections that the organisations of rejected files had in the previous configuration.
func (l *Loaded) restoreOrgs() {
	before := l.from.Previous
	for _, path := range slices.Sorted(maps.Keys(l.refused)) {
		f := settings.RejectedFile{File: path, Fault: l.refused[path]}
		if i := slices.IndexFunc(before.Config.Orgs, func(o settings.Org) bool { return o.File == path }); i >= 0 {
			o := before.Config.Orgs[i]
			o.Policies.KeepOnFailure, o.Reused, o.CachedText = true, false, nil // without its file, it depends only on the main file
			l.Config.Orgs, f.Org = append(l.Config.Orgs, o), o.ID
			l.files[path] = before.files[path]
			l.watchRego(&o)
		}
		l.Config.RejectedFiles = append(l.Config.RejectedFiles, f)
	}
}

// blamed returns the texts of the faults in err by organisation file. It returns nil if a fault does not concern an organisation file, or
// concerns a file that was already rejected.
func (l *Loaded) blamed(err error) map[string]string {
	faults, _ := errors.AsType[strictyaml.Errors](l.Locate(err))
	refused := make(map[string]string)
	for _, f := range faults {
		var i int
		if _, err := fmt.Sscanf(f.Path, "orgs[%d]", &i); err != nil || i < 0 || i >= len(l.Config.Orgs) {
			return nil
		}
		path := l.Config.Orgs[i].File
		if path == "" || l.refused[path] != "" {
			return nil
		}
		refused[path] = strings.TrimPrefix(refused[path]+"\n"+f.Error(), "\n")
	}
	return refused
}
