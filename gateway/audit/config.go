package audit

import (
	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/policies/logfile"
)

// Config is the audit section.
type Config struct {
	File *logfile.File `yaml:"file" doc:"writes a line before and after each change, one JSON object per line; a change that cannot be written is not carried out. A gateway has a file of its own"`
	Sync bool          `yaml:"sync" doc:"waits until an intent is on the disk before the change is made"`
}

// Validate reports every fault, each with its path below the section.
func (c Config) Validate() error {
	if c.File == nil {
		return nil
	}
	return fault.At("file", c.File.Validate())
}
