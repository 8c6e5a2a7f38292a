package catalog

// Lists are the platform's catalog.
type Lists struct {
	GPUs []GPU
	CPUs []CPU
	// Tiers holds the kind of a network volume whose kind a request leaves out, by
	// data centre; that of a centre without network volumes is "".
	Tiers map[string]string
	// ListPrices is the platform's own list where the prices are those agreed with the
	// organisation, which the platform may not know where it states the cost of a pod; nil
	// where nothing was agreed.
	ListPrices *Lists
}

// GPU is one GPU type of the platform's catalog.
type GPU struct {
	// ID is the type's identifier, matched byte for byte.
	ID string
	// Name is its display name.
	Name string
	// Pool is the serverless pool the type belongs to; "" for none.
	Pool string
	// Manufacturer is NVIDIA, AMD or UNKNOWN.
	Manufacturer string
	// MemoryGB is its video memory in GB; 0 when the catalog did not say.
	MemoryGB int64
	// Secure and Community are the offers in the two clouds, per GPU and hour.
	Secure, Community Offer
	// Serverless is the price per GPU and hour of a serverless worker.
	Serverless Price
}

// Offer is the price of a cloud for a GPU type.
type Offer struct {
	// Offered reports whether the cloud has the type at all.
	Offered bool
	// MaxCount is the most GPUs of the type one pod can have there; 0 when the
	// catalog did not say.
	MaxCount int64
	// Price is per GPU and hour.
	Price Price
}

// Price is a list price per hour that may be unknown.
type Price struct {
	// Known is false when the list had no price, or one that cannot be right
	// (zero, negative, not a number).
	Known bool
	// PerHour is the price of one unit for one hour.
	PerHour Money
}

// CPU is one CPU flavour of the platform's catalog.
type CPU struct {
	// ID is the bare flavour, e.g. cpu5c.
	ID string
	// Name and Group are for people.
	Name, Group string
	// MinVCPU and MaxVCPU bound the vCPU count; 0 when the catalog did not say.
	MinVCPU, MaxVCPU int64
	// Secure and Serverless are per vCPU and hour, for pods and workers.
	Secure, Serverless Price
}
