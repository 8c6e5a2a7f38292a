// Package fault defines the errors with which packages report faults of a configuration. A fault contains the path of its setting as a
// separate field, so that callers need not parse messages.
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
