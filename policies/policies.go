package policies

import (
	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/isolate"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
)

// Configuration of an organisation's policies.
type (
	// Config is the policy configuration of one organisation.
	Config = policyconfig.Config
	// Limits bounds the resources of evaluations.
	Limits = policyconfig.Limits
	// Exception suppresses a policy for some callers until a given time.
	Exception = policyconfig.Exception
	// Entry enables one policy.
	Entry = policyconfig.Entry
	// Mode is the effect of a violation.
	Mode = policyconfig.Mode
	// Bundle configures an OPA bundle with an organisation's own Rego.
	Bundle = policyconfig.Bundle
	// BundleKey verifies bundle signatures.
	BundleKey = policyconfig.BundleKey
	// Names lists the teams, keys and roles that a configuration may refer to.
	Names = compiler.Names
	// Isolator runs untrusted Rego in child processes.
	Isolator = isolate.Runner
)

// Modes of an entry.
const (
	ModeEnforce = policyconfig.ModeEnforce
	ModeWarn    = policyconfig.ModeWarn
	ModeShadow  = policyconfig.ModeShadow
)

// Policy input.
type (
	// Input is everything that policies can read about a call.
	Input = policyinput.Input
	// Request is the call as it would be sent to the platform.
	Request = policyinput.Request
	// Caller is the sender of the call.
	Caller = policyinput.Caller
	// Resource is the resource that the call is about.
	Resource = policyinput.Resource
	// Template is a template that the call names.
	Template = policyinput.Template
	// Owner is the owner of a resource.
	Owner = policyinput.Owner
	// Spend is the current usage of an organisation, a team and a key.
	Spend = policyinput.Spend
	// Account is one account of the spending ledger.
	Account = policyinput.Account
	// Cost is the maximum price of a call.
	Cost = policyinput.Cost
)

// ErrInput is wrapped by errors about an invalid Input.
var ErrInput = policyinput.ErrInput
