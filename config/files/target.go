package files

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Target is a setting that names a file that the gateway writes and later reads. As with a [Path], call AllowAll, Confine or Deny before
// you use a decoded Target.
type Target struct{ Path }

// UnrestrictedTarget returns a Target that may refer to any file, for names that do not come from a configuration. A relative name is
// resolved against the working directory.
func UnrestrictedTarget(name string) Target { return Target{UnrestrictedPath(name)} }

// Replace atomically replaces the content of the file with data. After a crash, the file has either the old or the new content.
func (t Target) Replace(data []byte) error {
	dir, name, err := t.parent()
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // the file itself is closed below
	temporary := filepath.Join(filepath.Dir(name), ".new-"+rand.Text())
	f, err := dir.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return t.located(err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = dir.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(t.located(err), dir.Remove(temporary))
	}
	return nil
}

// parent opens a parent directory of the file, and returns the name of the file relative to that directory.
func (t Target) parent() (*os.Root, string, error) {
	if t.reach != anywhere {
		return t.open()
	}
	dir, err := openRoot(filepath.Dir(t.String()))
	return dir, filepath.Base(t.String()), err
}

// Check returns an error if t is confined and leads out of its root directory, or if the directory of the file does not exist.
func (t Target) Check() error {
	if t.IsZero() || t.reach == anywhere {
		return nil
	}
	root, name, err := t.open()
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // opened for reading only
	if _, err := root.Stat(filepath.Dir(name)); err != nil {
		return t.located(err)
	}
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return t.located(err)
	case !info.Mode().IsRegular():
		return &fs.PathError{Op: "open", Path: t.String(), Err: ErrIrregular}
	}
	return nil
}

// Credential is a setting that names a file with a token or a key. In the file of an organisation, the setting org_bounds restricts the
// files that a Credential may name.
type Credential struct{ Path }

// UnrestrictedCredential returns a Credential that may refer to any file, for names that do not come from a configuration. A relative name
// is resolved against the working directory.
func UnrestrictedCredential(name string) Credential { return Credential{UnrestrictedPath(name)} }
