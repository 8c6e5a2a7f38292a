package config

import (
	"fmt"
	"io/fs"
	"time"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

const (
	// maxRead bounds the files of the main configuration, without those of policies, and maxOrgRead the files of one organisation in a
	// file of its own, in bytes.
	maxRead, maxOrgRead = 256 << 20, 32 << 20
	// readTime bounds the time of reading either.
	readTime = 10 * time.Second
)

// allowance is what may still be read of the files of a configuration, or of an organisation.
type allowance struct {
	bytes int
	time  time.Duration
}

func (a *allowance) tooSlow(name string) error {
	return &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%w for the files before it, which took %s", files.ErrTooSlow, readTime)}
}

func (a *allowance) tooLarge(name string) error {
	return &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%w: the files of the configuration or organisation are larger than their bound together", files.ErrTooLarge)}
}

func newAllowance(bytes int) *allowance { return &allowance{bytes, readTime} }

// readFor reads a file for an organisation, or for the rest of the main file where o is the zero Org. The main configuration, and each
// organisation in a file of its own, have an allowance: none uses up the allowance of another.
func (l *Loaded) readFor(o *settings.Org, p files.Path, limit int64) ([]byte, error) {
	a := l.allowances[o.File]
	if a == nil {
		a = newAllowance(maxRead)
		if o.File != "" {
			a = newAllowance(maxOrgRead)
		}
		l.allowances[o.File] = a
	}
	readFile := l.from.ReadFile // the function below is kept, and must not keep l
	return l.Inputs.read(p, func() ([]byte, error) {
		if readFile != nil {
			return readFile(p.String())
		}
		return p.Read(limit)
	}, a)
}

// secretReader reads the files of an organisation's secrets, or those of the main file where o is the zero Org.
func (l *Loaded) secretReader(o *settings.Org) func(name string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		return l.readFor(o, l.Config.OrgBounds.SecretFile(o, name), files.MaxSecret)
	}
}
