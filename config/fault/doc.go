// Package fault defines how packages report faults of a configuration. A fault is a value with the path of its setting, so that no message
// has to be parsed.
//
//	func (c Config) Validate() error {
//		var errs []error
//		if c.Rate < 1 {
//			errs = append(errs, fault.Errorf("rate", "must be positive, got %d", c.Rate))
//		}
//		return errors.Join(errs...)
//	}
//
// A path is relative to the configuration of the package that reports the fault. Each level above prepends its own part with [At]. Package
// strictyaml adds the file, line and column.
package fault
