// Package fault is how packages report faults of a configuration: each
// fault is a value with the path of the setting, never a string to be read again.
//
//	func (c Config) Validate() error {
//		var errs []error
//		if c.Rate < 1 {
//			errs = append(errs, fault.Errorf("rate", "must be positive, got %d", c.Rate))
//		}
//		return errors.Join(errs...)
//	}
//
// Paths are relative to the configuration of the reporting package; each
// level above puts its own part in front with [At], and package strictyaml adds
// file, line and column.
package fault
