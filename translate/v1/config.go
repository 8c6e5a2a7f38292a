package v1

import (
	"errors"
	"regexp"
	"time"

	configfault "github.com/tollgate-dev/tollgate/config/fault"
)

// Config are the settings of the v1 dialect. Start from DefaultConfig: the zero
// value is not valid.
type Config struct {
	Brand              string        `yaml:"brand" doc:"the platform's name as old clients spell it inside names on the wire: include<Brand>Templates, is<Brand>. Letters and digits"`
	CapacityStatus     int           `yaml:"capacity_status" doc:"the status of 'nothing is free': old clients take a 4xx as 'never again' and a 5xx as 'try the next'"`
	StartSSHDefault    bool          `yaml:"start_ssh_default" doc:"ask v2 to start the SSH server on pods without a template whose ports hold 22/tcp, as v1 did by itself"`
	RestartAfterUpdate bool          `yaml:"restart_after_update" doc:"restarts a running pod after a change of its container, which v1 re-created"`
	TemplateRollout    bool          `yaml:"template_rollout" doc:"applies an edited template to the endpoints made from it, which followed it in v1"`
	GoTimeFormat       bool          `yaml:"go_time_format" doc:"prints times as v1 did ('2006-01-02 15:04:05.000 +0000 UTC') instead of RFC 3339"`
	GPUMinimums        bool          `yaml:"gpu_minimums" doc:"sends the memory and vCPU minimums per GPU. Turn it off for a platform whose bodies do not know them"`
	ExecForm           string        `yaml:"exec_form" doc:"how the command of a pod is sent: 'arrays' (entrypoint and cmd) or 'args' (the JSON object text)"`
	Deprecated         string        `yaml:"deprecated" doc:"the day v1 was retired, sent in the Deprecation header (RFC 9745). RFC 3339 date"`
	Sunset             string        `yaml:"sunset" doc:"the day this translation may end, sent in the Sunset header (RFC 8594). RFC 3339 date, not before deprecated"`
	Budget             time.Duration `yaml:"budget" doc:"the time one request may take; old clients give up after 30 s. 1s to 29s"`
	VolumeBudget       time.Duration `yaml:"volume_budget" doc:"the same for network volumes, whose clients give up after 10 s. 1s to budget"`
}

// The values of Config.ExecForm.
const (
	ExecArrays = "arrays"
	ExecArgs   = "args"
)

// DefaultConfig returns the documented defaults.
func DefaultConfig() Config {
	return Config{
		Brand:              "Platform",
		CapacityStatus:     500,
		StartSSHDefault:    true,
		RestartAfterUpdate: true,
		TemplateRollout:    true,
		GPUMinimums:        true,
		ExecForm:           ExecArrays,
		Deprecated:         "2026-11-15",
		Sunset:             "2026-11-15",
		Budget:             25 * time.Second,
		VolumeBudget:       9 * time.Second,
	}
}

var brandPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,31}$`)

// Validate returns all faults joined, each beginning with the field's name.
func (c Config) Validate() error {
	var faults []error
	bad := func(path, format string, args ...any) {
		faults = append(faults, configfault.Errorf(path, format, args...))
	}
	if !brandPattern.MatchString(c.Brand) {
		bad("brand", "%q is not a name of letters and digits", c.Brand)
	}
	if c.CapacityStatus < 400 || c.CapacityStatus > 599 {
		bad("capacity_status", "%d is not an error status (400 to 599)", c.CapacityStatus)
	}
	if c.ExecForm != ExecArrays && c.ExecForm != ExecArgs {
		bad("exec_form", "%q is neither %q nor %q", c.ExecForm, ExecArrays, ExecArgs)
	}
	deprecated, err := time.Parse(time.DateOnly, c.Deprecated)
	if err != nil {
		bad("deprecated", "%q is not a date like 2026-11-15", c.Deprecated)
	}
	sunset, err := time.Parse(time.DateOnly, c.Sunset)
	if err != nil {
		bad("sunset", "%q is not a date like 2026-11-15", c.Sunset)
	} else if sunset.Before(deprecated) {
		bad("sunset", "%s is before deprecated (%s), which RFC 9745 forbids", c.Sunset, c.Deprecated)
	}
	if c.Budget < time.Second || c.Budget > 29*time.Second {
		bad("budget", "%v is not between 1s and 29s", c.Budget)
	}
	if c.VolumeBudget < time.Second || c.VolumeBudget > c.Budget {
		bad("volume_budget", "%v is not between 1s and budget (%v)", c.VolumeBudget, c.Budget)
	}
	return errors.Join(faults...)
}
