package legacy

// Quirks are the differences between the dialects that have no other reason than
// their history.
type Quirks struct {
	// Interface is the dialect's name in warnings.
	Interface string
	// ReadFirst reads a resource before it is changed, also where the change
	// needs nothing of it: v1 tells a missing resource by that read.
	ReadFirst bool
	// RaisedSize, NoVolume and NoCPUVolume word the warnings about sizes below the
	// smallest, and about volumes of templates and pods that can have none.
	RaisedSize, NoVolume, NoCPUVolume string
	// GPUsField is the dialect's name of an endpoint's choice of GPUs. PicksPools
	// chooses when there is none.
	GPUsField         string
	PicksDefaultPools bool
	// DefaultIdle is the idle timeout in seconds of endpoints made without one.
	DefaultIdle int64
	// StrictComputeType refuses any GPU option for a CPU endpoint: v1 did; GraphQL's clients write
	// back all options, for CPU and GPU endpoints alike.
	StrictComputeType bool
	// DataCentersField, CountriesField and VCPUsField are the dialect's names.
	DataCentersField, CountriesField, VCPUsField string
	// UnknownTypes begins the refusal of GPU types of which the catalog has none.
	UnknownTypes string
	// QueryCountriesSeparately asks the catalog twice when countries are named: v1 also
	// chooses from and shows types that are elsewhere.
	QueryCountriesSeparately bool
}
