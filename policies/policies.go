package policies

import (
	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/isolate"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
)

// The parts of an organisation's section.
type (
	// Config is one organisation's section.
	Config = policyconfig.Config
	// Limits bound the resources of evaluations.
	Limits = policyconfig.Limits
	// Exception lifts a policy for some callers, for a time and for a reason.
	Exception = policyconfig.Exception
	// Entry switches one policy on.
	Entry = policyconfig.Entry
	// Mode sets the effect of a violation that a policy finds.
	Mode = policyconfig.Mode
	// Bundle says where an organisation's own Rego comes from as an OPA bundle.
	Bundle = policyconfig.Bundle
	// BundleKey verifies the signatures of bundles.
	BundleKey = policyconfig.BundleKey
	// Names are the names that a section may refer to besides policies.
	Names = compiler.Names
	// Isolator runs Rego that may never end in child processes.
	Isolator = isolate.Runner
)

// The modes.
const (
	ModeEnforce = policyconfig.ModeEnforce
	ModeWarn    = policyconfig.ModeWarn
	ModeShadow  = policyconfig.ModeShadow
)

// The input that a call is judged by.
type (
	// Input is everything a policy may know about a call.
	Input = policyinput.Input
	// Request is the call as the platform would get it.
	Request = policyinput.Request
	// Caller is the maker of the call.
	Caller = policyinput.Caller
	// Resource is the subject of the call.
	Resource = policyinput.Resource
	// Template holds the gateway's facts about a template that a call names.
	Template = policyinput.Template
	// Owner is the maker of a resource.
	Owner = policyinput.Owner
	// Spend is the present use of an organisation, a team and a key.
	Spend = policyinput.Spend
	// Account is one line of the ledger.
	Account = policyinput.Account
	// Cost is the worst-case price of a call.
	Cost = policyinput.Cost
)

// ErrInput is wrapped by errors about an Input that cannot be judged.
var ErrInput = policyinput.ErrInput
