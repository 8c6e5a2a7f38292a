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

// orgFile is a file with one organisation.
type orgFile struct {
	path string
	data []byte
	err  error // of reading it
}

// orgFiles are the files with organisations that were taken, by path.
type orgFiles map[string]*orgPart

// orgPart is a file that was taken, and what was made of it.
type orgPart struct {
	data   []byte
	digest digest // of the input that data is
	// main is the digest of the main file that it was read beside, by whose bounds and settings it was judged.
	main      digest
	positions *strictyaml.Positions
	// made is the section with everything that belongs to it, such as the values of secrets; nil where there are key files.
	made    *settings.Org
	secrets []strictyaml.Secret
	places  []settings.Destination
}

// stays reports whether the section of a file can be had from that of the configuration before.
func (l *Loaded) stays(p *orgPart, f *orgFile) bool {
	return p != nil && p.made != nil && p.main == l.main && f.err == nil && bytes.Equal(p.data, f.data) &&
		!slices.ContainsFunc(p.places, func(s settings.Destination) bool { return s.Check() != nil }) &&
		!slices.ContainsFunc(p.secrets, func(s strictyaml.Secret) bool { return !s.IsCurrent(l.from.Env, l.secretReader(p.made)) })
}

// noteOrgs remembers the sections of files for the next configuration.
func (l *Loaded) noteOrgs() {
	for i := range l.Config.Orgs {
		o := &l.Config.Orgs[i]
		part := l.files[o.File]
		if part == nil || part.made != nil || o.Policies.KeepOnFailure || len(o.KeyFiles) > 0 {
			continue
		}
		o.CachedText = new(strictyaml.TextCache)
		made := *o // a pointer to it would keep all the others, too
		part.made, part.places = &made, o.Destinations()
		_ = strictyaml.Each(o, func(s *strictyaml.Secret) error { // they are resolved
			if !s.IsZero() {
				part.secrets = append(part.secrets, *s)
			}
			return nil
		})
	}
}

// readOrgFiles reads the files that a pattern matches. Their names are inputs. Only files really in the directory are read: a link that
// leads out of it is a fault, and so is anything but a file.
func (l *Loaded) readOrgFiles(dir string) ([]orgFile, error) {
	pattern := beside(dir, l.Config.OrgsFiles)
	if l.Config.OrgsFiles == "" {
		return nil, nil
	}
	dir = filepath.Dir(pattern)
	if strings.ContainsAny(dir, "*?[\\") {
		return nil, fault.Errorf("orgs_files", "has a pattern in the name of its directory, %s", dir)
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
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(filepath.Base(name), ".") }) // of editors
	found := make([]orgFile, len(names))
	for i, name := range names {
		found[i].path = name
		found[i].data, found[i].err = l.readOrgFile(dir, name)
	}
	return found, nil
}

// readOrgFile returns the content of a file with an organisation. Unless all are read anew, it does not read a file that has not changed
// since the configuration before was read. It never reads one that was refused: the input is what was refused, so that a correction made
// meanwhile is a change.
func (l *Loaded) readOrgFile(dir, name string) ([]byte, error) {
	if l.refused[name] != "" {
		return nil, nil
	}
	if before := l.from.Previous; before != nil && !l.from.Reread {
		part := before.files[name]
		if part != nil && part.digest == before.Inputs.seen[name] && l.Inputs.keep(name, &before.Inputs) {
			return part.data, nil
		}
	}
	return l.readFor(&settings.Org{File: name}, files.ConfinedPath(dir, filepath.Base(name)), strictyaml.MaxSize)
}

// includeOrgs adds the organisations of files to those of the main file. A file that has not changed since before comes first: of two that
// have an entry that only one may have, the one that changed is at fault. It returns faults of form, and others.
func (l *Loaded) includeOrgs(found []orgFile) (form strictyaml.Errors, other error) {
	var before orgFiles
	if l.from.Previous != nil {
		before = l.from.Previous.files
	}
	changed := func(f orgFile) bool {
		part, had := before[f.path]
		return l.from.Previous != nil && (!had || !bytes.Equal(part.data, f.data))
	}
	slices.SortStableFunc(found, func(a, b orgFile) int {
		switch ca, cb := changed(a), changed(b); {
		case ca == cb:
			return 0
		case ca:
			return 1
		default:
			return -1
		}
	})
	l.files = make(orgFiles, len(found))
	l.Config.Orgs = slices.Grow(l.Config.Orgs, len(found))
	for _, f := range found {
		if l.refused[f.path] != "" {
			continue
		}
		i := len(l.Config.Orgs)
		if part := before[f.path]; l.stays(part, &f) {
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
			faults = strictyaml.Errors{{File: f.path, Path: at, Message: causeOf(f.err).Error()}}
		}
		o.File, o.Untrusted = f.path, len(faults) > 0
		l.files[f.path] = &orgPart{data: f.data, digest: l.Inputs.seen[f.path], main: l.main, positions: positions}
		form = append(form, faults...)
		if len(faults) == 0 {
			err := l.Config.OrgBounds.Check(o)
			other = errors.Join(other, fault.At(at, err))
			o.Untrusted = err != nil
		}
	}
	return form, other
}

// causeOf is an error without the path that it is about.
func causeOf(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

// resolveSecrets looks secrets up, but those of organisations that may not name them.
func (l *Loaded) resolveSecrets() error {
	orgs := l.Config.Orgs
	l.Config.Orgs = nil
	errs := []error{strictyaml.ResolveSecrets(&l.Config, l.from.Env, l.secretReader(new(settings.Org)))}
	l.Config.Orgs = orgs
	for i := range orgs {
		if !orgs[i].Untrusted && !orgs[i].Reused {
			errs = append(errs, fault.At(fault.Index("orgs", i), strictyaml.ResolveSecrets(&orgs[i], l.from.Env, l.secretReader(&orgs[i]))))
		}
	}
	return errors.Join(errs...)
}

// keepOrgs adds the last good sections of organisations whose files were refused.
func (l *Loaded) keepOrgs() {
	before := l.from.Previous
	for _, path := range slices.Sorted(maps.Keys(l.refused)) {
		f := settings.RejectedFile{File: path, Fault: l.refused[path]}
		if i := slices.IndexFunc(before.Config.Orgs, func(o settings.Org) bool { return o.File == path }); i >= 0 {
			o := before.Config.Orgs[i]
			o.Policies.KeepOnFailure, o.Reused, o.CachedText = true, false, nil // it stays without its file, by what the main file is now
			l.Config.Orgs, f.Org = append(l.Config.Orgs, o), o.ID
			l.files[path] = before.files[path]
			l.watchRego(&o)
		}
		l.Config.RejectedFiles = append(l.Config.RejectedFiles, f)
	}
}

// blamed returns the files that faults are about, with the faults' texts, nil when a fault is about something else or about a file that was
// refused already.
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
