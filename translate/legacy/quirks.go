package legacy

// Quirks describes differences between the dialects that have only historical reasons.
type Quirks struct {
	// Interface is the dialect's name in warnings.
	Interface string
	// ReadFirst reads a resource before each update, even if the update does not depend on the current state. With this read, v1 detects a
	// missing resource.
	ReadFirst bool
	// RaisedSize, NoVolume and NoCPUVolume are texts of warnings: about a volume size below the minimum, about a volume of a template that
	// cannot have one, and about a volume of a CPU pod.
	RaisedSize, NoVolume, NoCPUVolume string
	// GPUsField is the dialect's name of the field with an endpoint's GPU selection. PicksDefaultPools selects pools automatically if the
	// field is empty.
	GPUsField         string
	PicksDefaultPools bool
	// DefaultIdle is the default idle timeout of a new endpoint in seconds.
	DefaultIdle int64
	// StrictComputeType rejects every GPU option of a CPU endpoint, as v1 did. GraphQL does not, because its clients write back all options of
	// an endpoint.
	StrictComputeType bool
	// DataCentersField, CountriesField and VCPUsField are the dialect's field names.
	DataCentersField, CountriesField, VCPUsField string
	// UnknownTypes is the beginning of the refusal of unknown GPU types.
	UnknownTypes string
	// QueryCountriesSeparately queries the catalog both with and without the requested countries, because v1 also considers and shows GPU
	// types in other countries.
	QueryCountriesSeparately bool
}
