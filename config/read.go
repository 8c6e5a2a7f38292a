package config

import (
	"time"

	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

const (
	// maxRead is the maximum total size, in bytes, of the files of the main configuration, without policies. maxOrgRead is the maximum total
	// size of the files of an organisation with its own configuration file.
	maxRead, maxOrgRead = 256 << 20, 32 << 20
	// readTime is the time limit for reading the files of the main configuration, and for reading the files of one organisation.
	readTime = 10 * time.Second
)

// allowance is the number of bytes and the time that remain for reading the files of the main configuration or of an organisation.
type allowance struct {
	bytes int
	time  time.Duration
}

// readFor reads a file that is named by the section of organisation o or, if o is the zero Org, by the main file. The main configuration
// and each organisation with its own configuration file have separate allowances.
func (l *Loaded) readFor(o *settings.Org, p files.Path, limit int64) ([]byte, error) {
	a := l.allowances[o.File]
	if a == nil {
		a = &allowance{maxRead, readTime}
		if o.File != "" {
			a.bytes = maxOrgRead
		}
		l.allowances[o.File] = a
	}
	readFile := l.from.ReadFile // the closure is stored, and must not retain l
	return l.Inputs.read(p, func() ([]byte, error) {
		if readFile != nil {
			return readFile(p.String())
		}
		return p.Read(limit)
	}, a)
}

// secretReader returns a function that reads the secret files named by the section of organisation o or, if o is the zero Org, by the main
// file.
func (l *Loaded) secretReader(o *settings.Org) func(name string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		return l.readFor(o, l.Config.OrgBounds.SecretFile(o, name), files.MaxSecret)
	}
}
