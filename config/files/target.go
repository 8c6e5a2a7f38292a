package files

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Target is a setting that names a file which the gateway writes and reads again. Where it may lead is decided as for a [Path].
type Target struct{ Path }

// UnrestrictedTarget returns a Target with a name that is not from a configuration, relative to the working directory.
func UnrestrictedTarget(name string) Target { return Target{UnrestrictedPath(name)} }

// Replace replaces the file by one with data, in one step: after a crash, the old file or the new one is there, whole.
func (t Target) Replace(data []byte) error {
	dir, name, err := t.parent()
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // the file is written
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

// parent opens a directory above the file, and returns its name below it.
func (t Target) parent() (*os.Root, string, error) {
	if t.reach != anywhere {
		return t.open()
	}
	dir, err := openRoot(filepath.Dir(t.String()))
	return dir, filepath.Base(t.String()), err
}

// Check reports a path that leads out of the directory that it is confined to, or whose directory is missing.
func (t Target) Check() error {
	if t.IsZero() || t.reach == anywhere {
		return nil
	}
	root, name, err := t.open()
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // nothing was written
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

// Credential is a setting that names a file with a token or a key. A file of an organisation may name it only as the bounds of
// organisations allow.
type Credential struct{ Path }

// UnrestrictedCredential returns a Credential with a name that is not from a configuration, relative to the working directory.
func UnrestrictedCredential(name string) Credential { return Credential{UnrestrictedPath(name)} }
