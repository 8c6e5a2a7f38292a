package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/authoring"
)

func newPolicy() *cobra.Command {
	cmd := group("policy", "Check, test, build, document and replay policies, and audit resources", "  tollgate policy check policies/acme",
		newPolicyCheck(), newPolicyTest(), newPolicyDocs(), newPolicyBuild(), newPolicyExport(), newPolicyReplay(), newPolicyAudit())
	cmd.Long = `Tools for authors of policies. Except for audit, which reads the resources of an
organisation, they need no running gateway, no platform and no secrets.`
	return cmd
}

// loadWithoutSecrets reads a configuration without its secrets. It accepts the keys of the demo.
func loadWithoutSecrets(path string) (*config.Loaded, error) {
	return config.Load(path, config.Sources{
		WithoutSecrets: true, DemoKeys: true,
	}, operator.Validator{})
}

// orgsOf returns the policy section of each organisation, by organisation ID.
func orgsOf(loaded *config.Loaded) map[string]policies.Config {
	out := make(map[string]policies.Config, len(loaded.Config.Orgs))
	for _, o := range loaded.Config.Orgs {
		out[o.ID] = o.Policies
	}
	return out
}

// placed adds positions in the configuration file to the faults in err that concern settings.
func placed(loaded *config.Loaded, err error) error {
	var out []error
	for _, f := range authoring.Faults(err) {
		if f.Path == "" {
			out = append(out, f)
			continue
		}
		out = append(out, loaded.Locate(f))
	}
	return errors.Join(out...)
}

// faulty prints the faults in err and their number. what names the checked file or directory.
func faulty(cmd *cobra.Command, what string, err error) error {
	report(cmd.ErrOrStderr(), what, err)
	return errReported
}
