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

// Sources holds the options of [Load].
type Sources struct {
	// Env looks up environment variables. If nil, the process environment is used.
	Env func(string) (string, bool)
	// ReadFile reads the files of secrets and keys. If nil, package files is used.
	ReadFile func(string) ([]byte, error)
	// DemoKeys permits the published keys of the demo. Only the demo may set DemoKeys.
	DemoKeys bool
	// WithoutSecrets leaves secrets unresolved and omits the check of log directories. Commands set it to read a configuration on a machine
	// that does not have the gateway's secrets and directories.
	WithoutSecrets bool
	// Reread makes Load read organisation files even if their size, modification time and identity are unchanged since Previous was read.
	Reread bool
	// Previous is the configuration in force, which was loaded with the same Sources and Checker and then committed. Load takes the section of
	// an organisation from Previous if the organisation's file, its secrets and the main file are unchanged. If an organisation file has a
	// fault, the organisation keeps its section from Previous, and Config.RejectedFiles lists the file. If Previous is nil, a fault in an
	// organisation file is a fault of the whole configuration.
	Previous *Loaded
}

// Checker checks settings that only other parts of the gateway can check, such as policies. Errors contain the paths of settings in the
// configuration file.
type Checker interface {
	// Faults returns all faults of c, joined.
	Faults(c *settings.Config) error
	// Warnings returns a joined error with a warning for each setting that has no effect at now. [Loaded.Warnings] separates the warnings and
	// adds their positions in the file.
	Warnings(c *settings.Config, now time.Time) error
}

// Loaded is a configuration with the positions of its values, which are needed to report faults found later.
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

// WithoutFaultyFiles handles err, an error that was found after loading. If err concerns only organisation files, WithoutFaultyFiles
// returns a configuration where the organisations of these files keep their previous sections. Otherwise it returns err with positions
// in the file, see [Loaded.Locate].
func (l *Loaded) WithoutFaultyFiles(err error) (*Loaded, error) {
	if refused := l.blamed(err); len(refused) > 0 && l.from.Previous != nil {
		maps.Copy(refused, l.refused)
		return parse(l.name, l.data, l.from, l.checker, l.Inputs, refused)
	}
	return nil, l.Locate(err)
}

// Commit marks the configuration as in force. It releases the previous configuration, so that earlier configurations do not stay in memory.
// After Commit, [Loaded.WithoutFaultyFiles] cannot restore previous sections and always returns an error.
func (l *Loaded) Commit() { l.from.Previous, l.data = nil, nil }

// Locate adds the position in the file to each fault in err. Use it for faults that components of the gateway report after loading.
func (l *Loaded) Locate(err error) error {
	if _, placed := errors.AsType[strictyaml.Errors](err); placed {
		return err
	}
	return strictyaml.Locate(l.positions, l.ofOrgs(err))
}

// ofOrgs prepends the path of the organisation's section to faults from the compilation of policies, because the paths of these faults are
// relative to that section.
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

// Load reads and checks the configuration file at path. If checker is nil, Load does not check policies, admin tokens or the configuration
// of Envoy.
func Load(path string, src Sources, checker Checker) (*Loaded, error) {
	var in Inputs
	file := files.UnrestrictedPath(path)
	data, err := in.read(file, func() ([]byte, error) { return file.Read(strictyaml.MaxSize) }, &allowance{maxRead, readTime})
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return parse(path, data, src, checker, in, nil)
}

// Parse is like [Load] but reads the main file from data. name is the file name in faults; relative paths are resolved against the
// directory of name. The error joins all faults.
func Parse(name string, data []byte, src Sources, checker Checker) (*Loaded, error) {
	return parse(name, data, src, checker, Inputs{}, nil)
}

// parse implements Parse. in holds the inputs read so far. refused holds the faults of the organisation files to ignore, by path.
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

// read reads all files of the configuration. Its error contains positions.
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
	return errors.Join(append(errs,
		strictyaml.Each(c, mutual),
		strictyaml.Each(c, func(t *settings.TLS) (err error) { t.Pair, err = pair(t); return err }),
		strictyaml.Each(c, func(a *settings.Authority) error { return a.Parse() }),
	)...)
}

// readKeys adds the keys from key files, and writes the bytes read to sum. It returns syntax and decoding faults in form, and errors about
// missing files in missing.
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
	paths = slices.DeleteFunc([]string{"legacy", "v1", "graphql"}, func(path string) bool { return !l.positions.Contains(path) })
	for i := range l.Config.Orgs {
		if len(l.Config.Orgs[i].Brownouts) > 0 {
			paths = append(paths, fault.Index("orgs", i)+".brownouts")
		}
	}
	return paths
}

// complete sets defaults that depend on other settings or on the directory of the file. It adds the policies account_changes and roles, and
// run_webhooks if the run interface is served, for the callers of each organisation that the listed entries of the policy leave out.
func (l *Loaded) complete(dir string) {
	_ = strictyaml.Each(&l.Config, func(f *logfile.File) error { f.Path = beside(dir, f.Path); return nil }) // the callback returns no errors
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
			if e, missing := defaultEntry(name, p.Policies); missing {
				p.Policies = append(slices.Clip(p.Policies), e) // appended, so that the places of faults stay valid
			}
		}
		l.watchRego(&l.Config.Orgs[i])
	}
}

// defaultEntry returns the entry of a policy that is in force by default, and false if one of the listed entries replaces it for all
// callers. An entry with teams or roles replaces the default only for these callers. An entry with both does not replace it.
func defaultEntry(policy string, listed []policyconfig.Entry) (e policyconfig.Entry, missing bool) {
	e = policyconfig.Entry{Policy: policy, Implied: true}
	for i := range listed {
		switch l := &listed[i]; {
		case l.Policy != policy:
		case len(l.Teams)+len(l.Roles) == 0:
			return e, false
		case len(l.Roles) == 0:
			e.ExceptTeams = append(e.ExceptTeams, l.Teams...)
		case len(l.Teams) == 0:
			e.ExceptRoles = append(e.ExceptRoles, l.Roles...)
		}
	}
	return e, true
}

// watchRego adds the policy directory of an organisation to the inputs if the organisation may name that directory.
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

// merge appends faults found after decoding to form. It omits faults that may be mere consequences of faults in form.
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
