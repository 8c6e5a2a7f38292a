package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/logfile"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
)

// Sources is where a configuration's secrets come from.
type Sources struct {
	// Env looks up a variable; nil is the process environment.
	Env func(string) (string, bool)
	// ReadFile reads the files of secrets and keys in place of package files; nil does not.
	ReadFile func(string) ([]byte, error)
	// DemoKeys admits the documented keys of the demo. Only the demo may.
	DemoKeys bool
	// WithoutSecrets leaves secrets unresolved, for commands that only read
	// other settings, and does not ask for directories of logs: the machine is
	// not the one that the gateway runs on.
	WithoutSecrets bool
	// Reread reads files of organisations although they have the size, time and identity that they had when Before was read.
	Reread bool
	// Previous is the configuration in force, from the same sources with the same judge. A file of an organisation that has not changed keeps its
	// section, unless one of its secrets or the main file has. A file of an organisation with a fault then keeps the organisation's section of that, and is
	// named in Config.Refused; nil makes it a fault of the whole. Before is committed.
	Previous *Loaded
}

// Checker checks a configuration with the engines of the gateway. Its faults have paths of
// the file.
type Checker interface {
	// Faults reports all errors.
	Faults(c *settings.Config) error
	// Warnings reports settings without an effect.
	Warnings(c *settings.Config, now time.Time) error
}

// Loaded is a configuration that was read, with the positions needed to place later
// faults.
type Loaded struct {
	// Config is the configuration, its secrets resolved, its paths absolute or
	// relative to the working directory.
	Config settings.Config
	// Inputs are its sources.
	Inputs     Inputs
	positions  *strictyaml.Positions
	judge      Checker
	files      orgFiles
	main       digest                // of the main file
	refused    map[string]string     // faults of organisations' files that are not taken, by path
	allowances map[string]*allowance // by organisation's file, "" for the main file

	// name, data and from are the arguments of Parse, without data and from.Before after Commit.
	name string
	data []byte
	from Sources
}

// WithoutFaultyFiles is told of a fault that was found later, and returns the configuration without the files of organisations that it is about. Its
// error is the fault in its place, where it is about anything else.
func (l *Loaded) WithoutFaultyFiles(err error) (*Loaded, error) {
	if refused := l.blamed(err); len(refused) > 0 && l.from.Previous != nil {
		maps.Copy(refused, l.refused)
		return parse(l.name, l.data, l.from, l.judge, l.Inputs, refused)
	}
	return nil, l.Locate(err)
}

// Commit says that the configuration is in force: Refuse refuses nothing any more. It releases the configuration before, which
// would keep all earlier ones in memory.
func (l *Loaded) Commit() { l.from.Previous, l.data = nil, nil }

// Locate gives faults found later, by the parts made from the configuration, their place in
// the file.
func (l *Loaded) Locate(err error) error {
	if _, placed := errors.AsType[strictyaml.Errors](err); placed {
		return err
	}
	return strictyaml.Locate(l.positions, l.ofOrgs(err))
}

// ofOrgs puts an organisation's place on faults of its section that policies
// found when they were compiled; their paths begin there.
func (l *Loaded) ofOrgs(err error) error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var errs []error
		for _, e := range many.Unwrap() {
			errs = append(errs, l.ofOrgs(e))
		}
		return errors.Join(errs...)
	}
	f, ok := errors.AsType[*policyconfig.Error](err)
	i := -1
	if ok {
		i = slices.IndexFunc(l.Config.Orgs, func(o settings.Org) bool { return o.ID == f.Org })
	}
	switch {
	case i < 0, f.Path == "" && l.Config.Orgs[i].File == "":
		return err
	case f.Path == "":
		return fault.At(fault.Index("orgs", i), err)
	}
	path := fault.Index("orgs", i) + "." + f.Path
	if f.File != "" {
		return fault.Errorf(path, "%s: %s", f.File, f.Message)
	}
	return fault.Errorf(path, "%s", f.Message)
}

// Load reads the file at path. Without a judge, nil, only the settings by
// themselves are judged.
func Load(path string, src Sources, judge Checker) (*Loaded, error) {
	var in Inputs
	file := files.UnrestrictedPath(path)
	data, err := in.read(file, func() ([]byte, error) { return file.Read(strictyaml.MaxSize) }, newAllowance(maxRead))
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return parse(path, data, src, judge, in, nil)
}

// Parse reads a configuration from memory. name is used in faults, and
// relative directories are taken from where it is. All faults found are
// joined in the error.
func Parse(name string, data []byte, src Sources, judge Checker) (*Loaded, error) {
	return parse(name, data, src, judge, Inputs{}, nil)
}

// parse is Parse; in are the inputs read so far, refused are the files of organisations that are not taken.
func parse(name string, data []byte, src Sources, judge Checker, in Inputs, refused map[string]string) (*Loaded, error) {
	l := &Loaded{
		Config: settings.Default(), Inputs: in, judge: judge, refused: refused, allowances: make(map[string]*allowance), name: name, data: data, from: src,
	}
	if src.Previous != nil {
		src.Previous.Commit()
	}
	if l.from.Env == nil {
		l.from.Env = os.LookupEnv
	}
	if err := l.read(); err != nil {
		return l.WithoutFaultyFiles(err)
	}
	return l, nil
}

// read reads all that the configuration is made from. Its error has places.
func (l *Loaded) read() error {
	var err error
	l.positions, err = strictyaml.DecodePartial(l.name, l.data, &l.Config)
	form, _ := errors.AsType[strictyaml.Errors](err)
	sum, dir := sha256.New(), filepath.Dir(l.name)
	_, _ = sum.Write(l.data) // a hash takes everything
	l.main = sha256.Sum256(l.data)
	l.Config.AllowAllDestinations()
	for i := range l.Config.Orgs {
		l.Config.Orgs[i].AllowAllDestinations(dir)
	}
	found, unread := l.readOrgFiles(dir)
	more, beyond := l.includeOrgs(found)
	form = append(form, more...)
	more, missing := l.readKeys(sum)
	form = append(form, more...)
	hint(form)
	later := errors.Join(unread, beyond, missing, l.resolve())
	l.complete(dir)
	l.keepOrgs()
	l.Config.AssignIssued()
	for _, path := range slices.Sorted(maps.Keys(l.files)) {
		_, _ = fmt.Fprintf(sum, "%q %d", path, len(l.files[path].data)) // a hash takes everything
		_, _ = sum.Write(l.files[path].data)
	}
	if !l.from.WithoutSecrets {
		later = errors.Join(later, l.places())
		if u := l.Config.Redis.URL; u.Resolved() {
			_, err := redisstore.Options(u.Reveal())
			later = errors.Join(later, fault.At("redis.url", err))
		}
	}
	l.Config.Revision = hex.EncodeToString(sum.Sum(nil)[:6])
	later = errors.Join(later, validate(&l.Config, l.from.DemoKeys), l.Config.Validate())
	if l.judge != nil {
		later = errors.Join(later, l.judge.Faults(&l.Config))
	}
	if form != nil || later != nil {
		return l.merge(form, later)
	}
	l.noteOrgs()
	return nil
}

// resolve looks the secrets up, and parses those that are certificates.
func (l *Loaded) resolve() error {
	c := &l.Config
	var errs []error
	if !l.from.WithoutSecrets {
		errs = append(errs, l.resolveSecrets())
	}
	errs = append(errs, fault.At("envoy.tls", mutual(&c.Envoy.TLS)))
	listeners := map[string]*settings.TLS{"tls": &c.TLS, "admin.tls": &c.Admin.TLS}
	for i := range c.Envoy.XDS.Groups {
		listeners[fault.Index("envoy.xds.groups", i)+".tls"] = &c.Envoy.XDS.Groups[i].TLS
		for j := range c.Envoy.XDS.Groups[i].Certificates {
			listeners[fault.Index(fault.Index("envoy.xds.groups", i)+".certificates", j)] = &c.Envoy.XDS.Groups[i].Certificates[j]
		}
	}
	for i := range c.Certificates.Authorities {
		errs = append(errs, fault.At(fault.Index("certificates.authorities", i), c.Certificates.Authorities[i].Parse()))
	}
	for path, t := range listeners {
		var err error
		t.Pair, err = pair(t)
		errs = append(errs, fault.At(path, err))
	}
	return errors.Join(errs...)
}

// readKeys adds the keys that are in files of their own, and the bytes it read to sum. form are the faults of their form.
func (l *Loaded) readKeys(sum io.Writer) (form strictyaml.Errors, missing error) {
	for i := range l.Config.Orgs {
		o, at := &l.Config.Orgs[i], fault.Index("orgs", i)
		if o.Untrusted {
			continue
		}
		most := math.MaxInt
		if o.File != "" {
			most = l.Config.OrgBounds.MaxKeys()
		}
		for j, path := range o.KeyFiles {
			data, err := l.readFor(o, path, strictyaml.MaxListSize)
			if err != nil {
				missing = errors.Join(missing, fault.At(fault.Index(at+".key_files", j), err))
				continue
			}
			_, _ = sum.Write(data) // a hash takes everything
			found, _ := errors.AsType[strictyaml.Errors](l.positions.Extend(path.String(), data, at+".keys", &o.Keys, most))
			form = append(form, found...)
		}
	}
	return form, missing
}

// complete fills in the settings that the file omits or gives relative to itself. The policies
// account_changes and roles are in force unless they are listed, and run_webhooks
// where the run interface is served.
func (l *Loaded) complete(dir string) {
	for _, file := range []*logfile.File{l.Config.Decisions.File, l.Config.Audit.File} {
		if file != nil {
			file.Path = beside(dir, file.Path)
		}
	}
	unlisted := []string{"account_changes", "roles"}
	if l.Config.Platform.RunURL != "" {
		unlisted = append(unlisted, "run_webhooks")
	}
	if u, err := url.Parse(l.Config.Platform.BaseURL); err == nil {
		l.Config.Legacy.Host = u.Hostname()
	}
	for i := range l.Config.Orgs {
		p := &l.Config.Orgs[i].Policies
		if l.Config.Orgs[i].Reused { // it is complete
			l.watchRego(&l.Config.Orgs[i])
			continue
		}
		runs := l.Config.Orgs[i].Prices.Runs
		for name, r := range runs {
			at := fault.Key(fault.Index("orgs", i)+".prices.runs", name)
			r.NoteKeys(func(key string) bool { return l.positions.Contains(at + "." + key) })
			runs[name] = r
		}
		for _, name := range unlisted {
			if !slices.ContainsFunc(p.Policies, func(e policyconfig.Entry) bool { return e.Policy == name }) {
				p.Policies = append(slices.Clip(p.Policies), policyconfig.Entry{Policy: name}) // last, so that the places of faults stay
			}
		}
		l.watchRego(&l.Config.Orgs[i])
	}
}

// watchRego makes the directory of an organisation's policies one of the inputs. A directory that the organisation may not name is never
// looked at.
func (l *Loaded) watchRego(o *settings.Org) {
	if !o.Untrusted && !o.Policies.Directory.IsZero() {
		l.Inputs.directory(o.Policies.Directory.String())
	}
}

func beside(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// merge puts faults found after decoding behind those of form, leaving out
// those that may only follow from them.
func (l *Loaded) merge(form strictyaml.Errors, later error) error {
	all := slices.Clone(form)
	found, _ := errors.AsType[strictyaml.Errors](l.Locate(later))
	for _, f := range found {
		if !form.Covers(f.Path) {
			all = append(all, f)
		}
	}
	return all.Sort()
}
