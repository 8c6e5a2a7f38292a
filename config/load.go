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

// Sources are the options of Load: where it reads secrets and files, and, for a reload, the configuration in force.
type Sources struct {
	// Env looks up environment variables. If nil, the process environment is used.
	Env func(string) (string, bool)
	// ReadFile reads the files of secrets and keys. If nil, package files is used.
	ReadFile func(string) ([]byte, error)
	// DemoKeys accepts the published keys of the demo. Only the demo may set it.
	DemoKeys bool
	// WithoutSecrets leaves secrets unresolved and does not check log directories. Commands that need only other settings use it on
	// machines other than the gateway's.
	WithoutSecrets bool
	// Reread reads organisation files even if their size, modification time and identity are unchanged since Previous was read.
	Reread bool
	// Previous is the configuration in force, loaded from the same sources with the same Checker and committed. An unchanged organisation
	// file reuses its section from Previous, unless one of its secrets or the main file has changed. If an organisation file has a fault,
	// the organisation keeps its section from Previous, and the file is listed in Config.RejectedFiles. If Previous is nil, a fault in an
	// organisation file is a fault of the whole configuration.
	Previous *Loaded
}

// Checker checks a configuration with the engines of the gateway. The paths in its errors are paths of the configuration file.
type Checker interface {
	// Faults returns all errors of c.
	Faults(c *settings.Config) error
	// Warnings returns the settings that have no effect, joined; [Loaded.Warnings] separates them and adds their places.
	Warnings(c *settings.Config, now time.Time) error
}

// Loaded is a configuration together with the positions of its values, which later faults need.
type Loaded struct {
	// Config is the configuration with resolved secrets. Its paths are absolute, or relative to the working directory.
	Config settings.Config
	// Inputs lists the files and directories that were read.
	Inputs     Inputs
	positions  *strictyaml.Positions
	checker    Checker
	files      orgFiles
	main       digest                // digest of the main file
	refused    map[string]string     // faults of rejected organisation files, by path
	allowances map[string]*allowance // by organisation file, "" for the main file

	// name, data and from are the arguments of Parse. Commit clears data and from.Previous.
	name string
	data []byte
	from Sources
}

// WithoutFaultyFiles handles a fault that was found after loading. If err concerns organisation files only, it returns the configuration
// without these files, whose organisations keep their previous sections. Otherwise it returns err with its place in the file.
func (l *Loaded) WithoutFaultyFiles(err error) (*Loaded, error) {
	if refused := l.blamed(err); len(refused) > 0 && l.from.Previous != nil {
		maps.Copy(refused, l.refused)
		return parse(l.name, l.data, l.from, l.checker, l.Inputs, refused)
	}
	return nil, l.Locate(err)
}

// Commit marks the configuration as in force. It releases the previous configuration, which would otherwise keep all earlier ones in
// memory. Therefore WithoutFaultyFiles can no longer replace the section of a faulty file by the previous one, and only returns the error.
func (l *Loaded) Commit() { l.from.Previous, l.data = nil, nil }

// Locate adds the place in the file to faults that were found after loading, by components built from the configuration.
func (l *Loaded) Locate(err error) error {
	if _, placed := errors.AsType[strictyaml.Errors](err); placed {
		return err
	}
	return strictyaml.Locate(l.positions, l.ofOrgs(err))
}

// ofOrgs prepends the path of the organisation to faults found while compiling its policies. The paths of these faults are relative to the
// organisation's section.
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

// Load reads the file at path. If checker is nil, only the settings themselves are checked; policies, admin tokens and the configuration of
// Envoy may then still have faults.
func Load(path string, src Sources, checker Checker) (*Loaded, error) {
	var in Inputs
	file := files.UnrestrictedPath(path)
	data, err := in.read(file, func() ([]byte, error) { return file.Read(strictyaml.MaxSize) }, newAllowance(maxRead))
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return parse(path, data, src, checker, in, nil)
}

// Parse reads a configuration from memory. name appears in faults, and relative paths are resolved against its directory. The error joins
// all faults found.
func Parse(name string, data []byte, src Sources, checker Checker) (*Loaded, error) {
	return parse(name, data, src, checker, Inputs{}, nil)
}

// parse implements Parse. in holds the inputs read so far, and refused the organisation files to leave out.
func parse(name string, data []byte, src Sources, checker Checker, in Inputs, refused map[string]string) (*Loaded, error) {
	l := &Loaded{
		Config: settings.Default(), Inputs: in, checker: checker, refused: refused, allowances: make(map[string]*allowance),
		name: name, data: data, from: src,
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

// read reads all files of the configuration. Its error has places.
func (l *Loaded) read() error {
	var err error
	l.positions, err = strictyaml.DecodePartial(l.name, l.data, &l.Config)
	form, _ := errors.AsType[strictyaml.Errors](err)
	sum, dir := sha256.New(), filepath.Dir(l.name)
	_, _ = sum.Write(l.data) // writing to a hash cannot fail
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
	l.restoreOrgs()
	l.Config.AssignIssued()
	l.Config.LegacySettings = l.legacySettings()
	for _, path := range slices.Sorted(maps.Keys(l.files)) {
		_, _ = fmt.Fprintf(sum, "%q %d", path, len(l.files[path].data)) // writing to a hash cannot fail
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
	if l.checker != nil {
		later = errors.Join(later, l.checker.Faults(&l.Config))
	}
	if form != nil || later != nil {
		return l.merge(form, later)
	}
	l.storeOrgs()
	return nil
}

// resolve resolves the secrets, and parses certificates.
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

// readKeys adds the keys from key files, and writes the bytes read to sum. It returns faults of the form of the files separately from
// missing files.
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
			_, _ = sum.Write(data) // writing to a hash cannot fail
			found, _ := errors.AsType[strictyaml.Errors](l.positions.Extend(path.String(), data, at+".keys", &o.Keys, most))
			form = append(form, found...)
		}
	}
	return form, missing
}

// legacySettings lists the paths of the settings of the retired interfaces that the files contain.
func (l *Loaded) legacySettings() (paths []string) {
	for _, section := range []string{"legacy", "v1", "graphql"} {
		if l.positions.Contains(section) {
			paths = append(paths, section)
		}
	}
	for i := range l.Config.Orgs {
		if len(l.Config.Orgs[i].Brownouts) > 0 {
			paths = append(paths, fault.Index("orgs", i)+".brownouts")
		}
	}
	return paths
}

// complete sets defaults that depend on other settings or on the directory of the file. The policies account_changes and roles apply unless
// they are listed, and run_webhooks applies if the run interface is served.
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
		if l.Config.Orgs[i].Reused { // already complete
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
				p.Policies = append(slices.Clip(p.Policies), policyconfig.Entry{Policy: name}) // appended, so that the places of faults stay valid
			}
		}
		l.watchRego(&l.Config.Orgs[i])
	}
}

// watchRego adds the policy directory of an organisation to the inputs, unless the organisation may not name that directory.
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

// merge appends faults found after decoding to form, without faults that may only result from earlier ones.
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
