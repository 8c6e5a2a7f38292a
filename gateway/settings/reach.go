package settings

import (
	"errors"
	"path/filepath"

	"github.com/tollgate-dev/tollgate/config/egress"
	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
)

// No file or server named by a decoded configuration can be reached until one of the functions in this file permits it. The functions find
// paths and URLs by their types, so that they also cover new settings.

// AllowAllDestinations permits all paths and URLs of c to lead anywhere. Relative paths are resolved against the working directory. It does
// not apply to organisations; see [Org.AllowAllDestinations].
func (c *Config) AllowAllDestinations() {
	orgs := c.Orgs
	c.Orgs = nil
	open(c, "")
	c.Orgs = orgs
}

// AllowAllDestinations permits all paths and URLs of an organisation to lead anywhere. It is for organisations in the main file. main is
// the directory of that file. Relative paths of tokens, keys and files to write are resolved against the working directory, and all other
// relative paths against main.
func (o *Org) AllowAllDestinations(main string) { open(o, main) }

func open(section any, dir string) {
	_ = errors.Join( // the callback returns no errors
		strictyaml.Each(section, func(p *files.Path) error { p.AllowAll(dir); return nil }),
		strictyaml.Each(section, func(t *files.Target) error { t.AllowAll(""); return nil }),
		strictyaml.Each(section, func(c *files.Credential) error { c.AllowAll(""); return nil }),
		strictyaml.Each(section, func(u *egress.URL) error { u.AllowAll(); return nil }),
	)
}

// confine restricts the paths and URLs of an organisation with its own configuration file. It returns a fault for each path or URL that
// violates one of these rules:
//
//   - a file or directory to read must be in the directory of the organisation's file;
//   - a file to write must be in the subdirectory named after the organisation;
//   - a file with a secret, a token or a key must match credential_files or, if credential_files is absent, be in the directory of the
//     organisation's file;
//   - a server must have a public address, or one in a network that the bounds list.
func (b *OrgBounds) confine(o *Org) error {
	dir := filepath.Dir(o.File)
	return errors.Join(
		strictyaml.Each(o, func(p *files.Path) error { p.Confine(dir, dir); return nil }),
		strictyaml.Each(o, func(t *files.Target) error { t.Confine(dir, filepath.Join(dir, o.ID)); return nil }),
		strictyaml.Each(o, func(c *files.Credential) error { return b.confineCredential(o.ID, dir, c) }),
		strictyaml.Each(o, func(u *egress.URL) error { u.Restrict(b.Networks); return nil }),
		strictyaml.Each(o, func(n *egress.Network) error {
			if !n.Within(b.Networks) {
				return errors.New("is not covered by org_bounds.networks")
			}
			return nil
		}),
		o.CheckDestinations(),
	)
}

// confineCredential restricts the path of a file with a token or a key to the files that the organisation may name.
func (b *OrgBounds) confineCredential(org, dir string, c *files.Credential) error {
	switch {
	case c.IsZero():
	case b.Files == nil:
		c.Confine(dir, dir)
	case b.allowsFile(org, c.Text()):
		c.AllowAll("")
	default:
		c.Deny()
		return errors.New("file " + c.Text() + " is not permitted for the organisation (org_bounds)")
	}
	return nil
}

// SecretFile returns the path of a file that contains a secret of an organisation.
func (b *OrgBounds) SecretFile(o *Org, name string) files.Path {
	p := files.UnrestrictedPath(name)
	if dir := filepath.Dir(o.File); o.File != "" && b.Files == nil {
		p.Confine(dir, dir)
	}
	return p
}

// CheckDestinations returns a fault for each path or URL of the organisation that it may not reach. The result can change when symbolic
// links change.
func (o *Org) CheckDestinations() error {
	return errors.Join(
		strictyaml.Each(o, func(p *files.Path) error { return files.Cause(p.Check()) }),
		strictyaml.Each(o, func(t *files.Target) error { return files.Cause(t.Check()) }),
		strictyaml.Each(o, func(c *files.Credential) error { return files.Cause(c.Check()) }),
		strictyaml.Each(o, func(u *egress.URL) error { return u.Check() }),
	)
}
