package legacy

// Quirks describes differences between the dialects that have only historical reasons.
type Quirks struct {
	// Interface is the dialect's name in warnings.
	Interface string
	// ReadFirst reads a resource before each update, even if the update does not depend on its state. v1 detects a
	// missing resource by this read.
	ReadFirst bool
	// RaisedSize, NoVolume and NoCPUVolume are warning texts for volume sizes below the minimum, and for volumes of
	// templates and pods that cannot have one.
	RaisedSize, NoVolume, NoCPUVolume string
	// GPUsField is the dialect's name of the field with an endpoint's GPU selection. PicksDefaultPools selects pools if
	// the field is empty.
	GPUsField         string
	PicksDefaultPools bool
	// DefaultIdle is the default idle timeout of a new endpoint in seconds.
	DefaultIdle int64
	// StrictComputeType rejects every GPU option of a CPU endpoint, as v1 did. GraphQL clients write back all options,
	// both for CPU and GPU endpoints.
	StrictComputeType bool
	// DataCentersField, CountriesField and VCPUsField are the dialect's field names.
	DataCentersField, CountriesField, VCPUsField string
	// UnknownTypes is the beginning of the refusal of unknown GPU types.
	UnknownTypes string
	// QueryCountriesSeparately queries the catalog both with and without the given countries, because v1 also considers
	// and shows GPU types in other countries.
	QueryCountriesSeparately bool
}
