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
	// Entry enables one policy of the library or of the organisation's own Rego, with its mode and parameters; see [policyconfig.Entry].
	Entry = policyconfig.Entry
	// Mode is the effect of a violation.
	Mode = policyconfig.Mode
	// Bundle configures an OPA bundle with an organisation's own Rego.
	Bundle = policyconfig.Bundle
	// BundleKey verifies bundle signatures.
	BundleKey = policyconfig.BundleKey
	// Error is a fault in a configuration or in Rego; see [policyconfig.Error].
	Error = policyconfig.Error
	// Names lists the Teams, Keys and Roles of an organisation, by ID, for Check.
	Names = compiler.Names
	// Isolator runs Rego that an organisation has written in child processes with limits on time and memory.
	Isolator = isolate.Runner
)

// Modes of an entry. A violation refuses the call in ModeEnforce, the default, is returned to the caller as a warning in ModeWarn, and is
// only logged in ModeShadow; see [Decision].
const (
	ModeEnforce = policyconfig.ModeEnforce
	ModeWarn    = policyconfig.ModeWarn
	ModeShadow  = policyconfig.ModeShadow
)

// Policy input.
type (
	// Input is everything that policies can read about a call: Request, Caller, Resource, Catalog, Cost, Spend and Time; see
	// [policyinput.Input].
	Input = policyinput.Input
	// Request is the call as it would be sent to the platform.
	Request = policyinput.Request
	// Caller is the sender of the call; see [policyinput.Caller].
	Caller = policyinput.Caller
	// Resource is the resource that the call is about, before and after the call; see [policyinput.Resource].
	Resource = policyinput.Resource
	// Template is a template that the call names.
	Template = policyinput.Template
	// Owner is the key and team that own a resource; see [policyinput.Owner].
	Owner = policyinput.Owner
	// Spend is the current usage of an organisation, a team and a key.
	Spend = policyinput.Spend
	// Account is one account of the spending ledger.
	Account = policyinput.Account
	// Cost is the highest price that a call can cause: an hourly rate, a one-time cost, or both; see [catalog.Cost].
	Cost = policyinput.Cost
)

// ErrInput is wrapped by errors about an invalid Input.
var ErrInput = policyinput.ErrInput
