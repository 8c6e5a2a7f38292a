package settings

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/tollgate-dev/tollgate/config/egress"
	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
)

// A path or a URL of a configuration leads nowhere until one of the functions of this file has said where it may lead. They find all of
// them by their types, so that a new setting is confined as the others are.

// AllowAllDestinationsnation lets the paths and URLs of c lead anywhere, except those of the organisations, see [Org.AllowAllDestinationsnation]. Paths begin in the working
// directory.
func (c *Config) AllowAllDestinations() {
	orgs := c.Orgs
	c.Orgs = nil
	open(c, "")
	c.Orgs = orgs
}

// DestinationAllDestinations lets the paths and URLs of an organisation in the main file, which is in the directory main, lead anywhere. Paths of files that are
// written, of tokens and of keys begin in the working directory, others in main.
func (o *Org) AllowAllDestinations(main string) { open(o, main) }

func open(section any, dir string) {
	_ = errors.Join( // nothing reports an error
		strictyaml.Each(section, func(p *files.Path) error { p.AllowAll(dir); return nil }),
		strictyaml.Each(section, func(t *files.Target) error { t.AllowAll(""); return nil }),
		strictyaml.Each(section, func(c *files.Credential) error { c.AllowAll(""); return nil }),
		strictyaml.Each(section, func(u *egress.URL) error { u.AllowAll(); return nil }),
	)
}

// confine sets where the paths and URLs of an organisation in a file of its own may lead, and reports those that lead elsewhere:
//
//   - a file or directory that is read is in the directory of the organisation's file;
//   - a file that is written is in the directory there that is named after the organisation;
//   - a file with a secret, a token or a key is one that credential_files allows; if credential_files is absent, it is in the directory
//     of the organisation's file;
//   - a server has a public address, or one in a network that the bounds list.
func (b *OrgBounds) confine(o *Org) error {
	dir := filepath.Dir(o.File)
	return errors.Join(
		strictyaml.Each(o, func(p *files.Path) error { p.Confine(dir, dir); return nil }),
		strictyaml.Each(o, func(t *files.Target) error { t.Confine(dir, filepath.Join(dir, o.ID)); return nil }),
		strictyaml.Each(o, func(c *files.Credential) error { return b.confineCredential(o.ID, dir, c) }),
		strictyaml.Each(o, func(u *egress.URL) error { u.Restrict(b.Networks); return nil }),
		strictyaml.Each(o, func(n *egress.Network) error {
			if !n.Within(b.Networks) {
				return errors.New("is not within a network of org_bounds.networks")
			}
			return nil
		}),
		o.CheckDestinations(),
		b.checkSecrets(o),
	)
}

// confineCredential sets where a file with a token or a key may be.
func (b *OrgBounds) confineCredential(org, dir string, c *files.Credential) error {
	switch {
	case c.IsZero():
	case b.Files == nil:
		c.Confine(dir, dir)
	case b.allowsFile(org, c.Text()):
		c.AllowAll("")
	default:
		c.Deny()
		return errors.New("file " + c.Text() + " is not one that the organisation may name, by org_bounds")
	}
	return nil
}

// SecretFile returns the path of a file that a secret of an organisation is in.
func (b *OrgBounds) SecretFile(o *Org, name string) files.Path {
	p := files.UnrestrictedPath(name)
	if dir := filepath.Dir(o.File); o.File != "" && b.Files == nil {
		p.Confine(dir, dir)
	}
	return p
}

// checkSecrets reports files of secrets that are not where they may be.
func (b *OrgBounds) checkSecrets(o *Org) error {
	return strictyaml.Each(o, func(s *strictyaml.Secret) error {
		_, file := s.Reference()
		return cause(b.SecretFile(o, file).Check())
	})
}

// AllowAllDestinationsnation is a path or URL that leads where an organisation may not go when links or names change.
type Destination interface{ Check() error }

// Destinations returns the paths and URLs of an organisation that CheckPlaces checks.
func (o *Org) Destinations() []Destination {
	return slices.Concat(placesOf[files.Path](o), placesOf[files.Target](o), placesOf[files.Credential](o), placesOf[egress.URL](o))
}

func placesOf[T interface {
	Destination
	IsZero() bool
}](o *Org) (set []Destination) {
	_ = strictyaml.Each(o, func(p *T) error { // no error is returned
		if !(*p).IsZero() {
			set = append(set, *p)
		}
		return nil
	})
	return set
}

// CheckDestinations reports paths and URLs of an organisation in a file of its own that lead out of what they are confined to. Links may have
// changed since the configuration was read.
func (o *Org) CheckDestinations() error {
	return errors.Join(
		strictyaml.Each(o, func(p *files.Path) error { return cause(p.Check()) }),
		strictyaml.Each(o, func(t *files.Target) error { return cause(t.Check()) }),
		strictyaml.Each(o, func(c *files.Credential) error { return cause(c.Check()) }),
		strictyaml.Each(o, func(u *egress.URL) error { return u.Check() }),
	)
}

// cause is an error of the file system without the path, which a fault has already.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
