package main

import (
	"errors"
	"fmt"

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

// orgsOf returns the policy sections of a configuration.
func orgsOf(loaded *config.Loaded) map[string]policies.Config {
	out := make(map[string]policies.Config, len(loaded.Config.Orgs))
	for _, o := range loaded.Config.Orgs {
		out[o.ID] = o.Policies
	}
	return out
}

// placed adds the position in the configuration to faults of its settings.
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

// configured compiles the policies of a configuration. If with is not nil, it may modify the settings first.
func configured(
	path string, isolated *policies.Isolator, with func(*policies.Limits, map[string]policies.Config),
) (*policies.Engine, error) {
	loaded, err := loadWithoutSecrets(path)
	if err != nil {
		return nil, err
	}
	limits, orgs := loaded.Config.Policies, orgsOf(loaded)
	with(&limits, orgs)
	e, err := policies.NewEngine(limits, orgs, policies.Deps{Isolate: isolated})
	if err != nil {
		return nil, placed(loaded, err)
	}
	return e, nil
}

// faulty prints all faults of what.
func faulty(cmd *cobra.Command, what string, err error) error {
	n := report(cmd.ErrOrStderr(), err)
	_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", what, counted(n, "fault"))
	return errReported
}
