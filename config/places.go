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

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/logfile"
)

// validateLogs reports logs that are rotated with each line, and a file that both logs would write.
func validateLogs(c *settings.Config) fault.Found {
	var errs fault.Found
	d, a := c.Decisions.File, c.Audit.File
	for path, file := range map[string]*logfile.File{"decisions.file.max_bytes": d, "audit.file.max_bytes": a} {
		if file != nil && file.MaxBytes > 0 && file.MaxBytes < leastLog {
			errs.Add(path, "must be at least %d, got %d: one line has several hundred bytes", leastLog, file.MaxBytes)
		}
	}
	if d == nil || a == nil || d.Path == "" || a.Path == "" {
		return errs
	}
	errs.If(filepath.Clean(d.Path) == filepath.Clean(a.Path), "audit.file.path", sameLog)
	errs.If(takes(d, a.Path), "audit.file.path", "is a name that rotation of decisions.file writes: the audit log would be replaced")
	errs.If(takes(a, d.Path) || shipped(c, d.Path), "decisions.file.path", "is a name that rotation or delivery of audit.file writes: the decision log would be replaced")
	return errs
}

const sameLog = "names the same file as decisions.file: the chain of the audit log would not verify"

// takes reports whether a log has a name for one of its rotated files.
func takes(f *logfile.File, name string) bool {
	rest, ok := strings.CutPrefix(filepath.Clean(name), filepath.Clean(f.Path)+".")
	n, err := strconv.Atoi(rest)
	return ok && err == nil && n >= 1 && n <= f.Kept()
}

// shipped reports whether the audit log has a name for the file with its position of delivery.
func shipped(c *settings.Config, name string) bool {
	rest, ok := strings.CutPrefix(filepath.Clean(name), filepath.Clean(c.Audit.File.Path)+".")
	return ok && (rest == "otlp" && c.Audit.OTLP.Endpoint != "" || rest == "webhook" && !c.Audit.Webhook.URL.IsZero())
}

// places reports files that cannot be written or read where the configuration says.
func (l *Loaded) places() error {
	c := &l.Config
	var errs fault.Found
	logs := map[string]*logfile.File{"decisions.file.path": c.Decisions.File, "audit.file.path": c.Audit.File}
	for path, file := range logs {
		if file != nil && file.Path != "" {
			errs = append(errs, fault.At(path, l.checkLog(file.Path)))
		}
	}
	if d, a := c.Decisions.File, c.Audit.File; d != nil && a != nil && filepath.Clean(d.Path) != filepath.Clean(a.Path) {
		errs.If(sameFile(d.Path, a.Path), "audit.file.path", sameLog)
	}
	if dir := c.Spend.Reports; dir != "" {
		errs = append(errs, fault.At("spend.reports", checkDirectory(dir)))
	}
	orgs := c.Orgs
	c.Orgs = nil
	errs = append(errs, l.checkFiles(c, new(settings.Org)))
	c.Orgs = orgs
	for i := range orgs {
		if o := &orgs[i]; !o.Untrusted && !o.Reused {
			errs = append(errs, fault.At(fault.Index("orgs", i), l.checkFiles(o, o)))
		}
	}
	return errors.Join(errs...)
}

// checkFiles reports files of a section with tokens or keys that are missing, and directories of written files that are. A missing file
// becomes one of the inputs.
func (l *Loaded) checkFiles(in any, o *settings.Org) error {
	return errors.Join(
		strictyaml.Each(in, func(f *files.Credential) error {
			if f.IsZero() || !placed(f.Path) || exists(f.String()) {
				return nil
			}
			_, err := l.readFor(o, f.Path, files.MaxToken)
			return causeAt(f.String(), err)
		}),
		strictyaml.Each(in, func(f *files.Target) error {
			if f.IsZero() || !placed(f.Path) {
				return nil
			}
			return checkDirectory(filepath.Dir(f.String()))
		}),
	)
}

// placed reports whether a path leads where it may. One that does not has a fault already.
func placed(p files.Path) bool { return p.Check() == nil }

func exists(name string) bool {
	_, err := files.Stat(name)
	return err == nil
}

// causeAt names the file of an error once.
func causeAt(name string, err error) error {
	if err == nil {
		return nil
	}
	return errors.New(name + ": " + causeOf(err).Error())
}

// checkDirectory reports a directory that is missing. One that cannot be read may be written to.
func checkDirectory(dir string) error {
	_, err := os.ReadDir(dir)
	if err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return causeAt(dir, err)
}

// checkLog reports a log that cannot be created, or that is another file of the configuration.
func (l *Loaded) checkLog(name string) error {
	dir := filepath.Dir(name)
	if err := checkDirectory(dir); err != nil {
		return err
	}
	info, err := files.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return errors.New(name + " is a directory: name a file in it")
	case err == nil && slices.ContainsFunc(l.Inputs.paths(), func(input string) bool { return sameFile(input, name) }):
		return errors.New(name + " is a file that the configuration is read from: the log would be appended to it")
	case err == nil:
		return nil
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		for _, virtual := range []string{"/proc", "/sys"} {
			if real == virtual || strings.HasPrefix(real, virtual+"/") {
				return errors.New(name + " cannot be created: " + virtual + " holds no files of its own")
			}
		}
	}
	return nil
}

// sameFile reports whether two names lead to one file, or will when it is created.
func sameFile(a, b string) bool {
	first, err1 := files.Stat(a)
	second, err2 := files.Stat(b)
	if err1 == nil && err2 == nil {
		return os.SameFile(first, second)
	}
	return target(a) == target(b)
}

// target returns the name that a file has after all links, of which the last may lead to nothing yet.
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
