package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/logfile"
)

// validateLogs reports a log whose rotation size is too small for one line, and a file that both logs would write.
func validateLogs(c *settings.Config) fault.Found {
	d, a := c.Decisions.File, c.Audit.File
	errs := fault.Found{strictyaml.Each(c, func(f *logfile.File) error {
		if f.MaxBytes <= 0 || f.MaxBytes >= leastLog {
			return nil
		}
		return fault.Errorf("max_bytes", "must be at least %d, got %d, because one line has several hundred bytes", leastLog, f.MaxBytes)
	})}
	if d == nil || a == nil || d.Path == "" || a.Path == "" {
		return errs
	}
	errs.If(filepath.Clean(d.Path) == filepath.Clean(a.Path), "audit.file.path", sameLog)
	errs.If(isRotated(d, a.Path), "audit.file.path",
		"is a name that rotated files of decisions.file have, so rotation would replace the audit log; use another file")
	errs.If(isRotated(a, d.Path) || shipped(c, d.Path), "decisions.file.path",
		"is a name that rotation or delivery of audit.file uses, so the decision log would be replaced; use another file")
	return errs
}

const sameLog = "is the same file as decisions.file, so the audit log could not be verified; use another file"

// isRotated reports whether name is one of the rotated files of a log.
func isRotated(f *logfile.File, name string) bool {
	rest, ok := strings.CutPrefix(filepath.Clean(name), filepath.Clean(f.Path)+".")
	n, err := strconv.Atoi(rest)
	return ok && err == nil && n >= 1 && n <= f.Kept()
}

// shipped reports whether name is the file with the shipping position of the audit log.
func shipped(c *settings.Config, name string) bool {
	rest, ok := strings.CutPrefix(filepath.Clean(name), filepath.Clean(c.Audit.File.Path)+".")
	return ok && (rest == "otlp" && c.Audit.OTLP.Endpoint != "" || rest == "webhook" && !c.Audit.Webhook.URL.IsZero())
}

// places reports configured files that cannot be read or written.
func (l *Loaded) places() error {
	c := &l.Config
	errs := fault.Found{strictyaml.Each(c, func(f *logfile.File) error {
		if f.Path == "" {
			return nil
		}
		return fault.At("path", l.checkLog(f.Path))
	})}
	if d, a := c.Decisions.File, c.Audit.File; d != nil && a != nil && filepath.Clean(d.Path) != filepath.Clean(a.Path) {
		errs.If(sameFile(d.Path, a.Path), "audit.file.path", sameLog)
	}
	if dir := c.Spend.Reports; dir != "" {
		errs = append(errs, fault.At("spend.reports", checkDirectory(dir)))
	}
	return errors.Join(append(errs, l.eachSection(l.checkFiles))...)
}

// checkFiles reports files with tokens or keys that cannot be read, files to write that are not regular files, and missing directories of
// files to write. It adds files that cannot be read to the inputs. It accepts a file to write that cannot be read, because the gateway
// replaces it.
func (l *Loaded) checkFiles(in any, o *settings.Org) error {
	return errors.Join(
		strictyaml.Each(in, func(f *files.Credential) error {
			if f.IsZero() || !isPermitted(f.Path) || isReadable(f.Path) {
				return nil
			}
			_, err := l.readFor(o, f.Path, files.MaxToken)
			return causeAt(f.String(), err)
		}),
		strictyaml.Each(in, func(f *files.Target) error {
			if f.IsZero() || !isPermitted(f.Path) {
				return nil
			}
			if info, err := files.Stat(f.String()); err == nil && !info.Mode().IsRegular() {
				return causeAt(f.String(), files.ErrIrregular)
			}
			return checkDirectory(filepath.Dir(f.String()))
		}),
	)
}

// isPermitted reports whether p may be read. If not, another check has already reported the fault.
func isPermitted(p files.Path) bool { return p.Check() == nil }

func isReadable(p files.Path) bool {
	_, err := p.Read(files.MaxToken)
	return err == nil
}

// causeAt returns err with the file name as a prefix, without repeating the name if err is an [*fs.PathError].
func causeAt(name string, err error) error {
	if err == nil {
		return nil
	}
	return errors.New(name + ": " + files.Cause(err).Error())
}

// checkDirectory reports a missing directory. An unreadable directory is accepted, because it may still be writable.
func checkDirectory(dir string) error {
	_, err := os.ReadDir(dir)
	if err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return causeAt(dir, err)
}

// checkLog reports a log that cannot be created, and a log that would overwrite another file of the configuration.
func (l *Loaded) checkLog(name string) error {
	dir := filepath.Dir(name)
	if err := checkDirectory(dir); err != nil {
		return err
	}
	info, err := files.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return errors.New(name + " is a directory; use a file in the directory")
	case err == nil && slices.ContainsFunc(l.Inputs.paths(), func(input string) bool { return sameFile(input, name) }):
		return errors.New(name + " is a file of the configuration, so the log would be appended to the configuration; use another file")
	case err == nil:
		return nil
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		for _, virtual := range []string{"/proc", "/sys"} {
			if real == virtual || strings.HasPrefix(real, virtual+"/") {
				return errors.New(name + " cannot be created: " + virtual + " is a virtual file system")
			}
		}
	}
	return nil
}

// warnLogs reports logs that this process cannot write, create or rotate. These are no faults, because the gateway may run as another user.
func (l *Loaded) warnLogs() error {
	if l.from.WithoutSecrets {
		return nil
	}
	return strictyaml.Each(&l.Config, func(f *logfile.File) error {
		const hint = ": %w; if the gateway runs as another user, repeat the check as that user"
		info, err := files.Stat(f.Path)
		if err == nil {
			if err := unix.Access(f.Path, unix.W_OK); err != nil {
				return fault.Errorf("path", "the current user cannot write %s"+hint, f.Path, err)
			}
		}
		dir := filepath.Dir(f.Path)
		if denied := unix.Access(dir, unix.W_OK|unix.X_OK); denied != nil && (err != nil || info.Mode().IsRegular()) {
			return fault.Errorf("path", "the current user cannot create or rotate the log in %s"+hint, dir, denied)
		}
		return nil
	})
}

// sameFile reports whether two names refer to the same file, which need not exist yet.
func sameFile(a, b string) bool {
	first, err1 := files.Stat(a)
	second, err2 := files.Stat(b)
	if err1 == nil && err2 == nil {
		return os.SameFile(first, second)
	}
	return target(a) == target(b)
}

// target returns the name of a file after resolving symbolic links. The file need not exist.
func target(name string) string {
	if link, err := os.Readlink(name); err == nil {
		if !filepath.IsAbs(link) {
			link = filepath.Join(filepath.Dir(name), link)
		}
		name = link
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(name)); err == nil {
		return filepath.Join(dir, filepath.Base(name))
	}
	return filepath.Clean(name)
}
