package catalog

// Lists holds the platform's catalog.
type Lists struct {
	GPUs []GPU
	CPUs []CPU
	// Tiers maps data centres to the type of a network volume whose request does not name a type. It is "" for data centres without network
	// volumes.
	Tiers map[string]string
	// ListPrices is the platform's own price list if this one contains negotiated prices, and otherwise nil. The platform may
	// report list prices in the records of pods.
	ListPrices *Lists
}

// GPU is a GPU type in the platform's catalog.
type GPU struct {
	// ID is the identifier of the type. It is compared byte by byte.
	ID string
	// Name is the display name.
	Name string
	// Pool is the serverless pool of the type, or "".
	Pool string
	// Manufacturer is NVIDIA, AMD or UNKNOWN.
	Manufacturer string
	// MemoryGB is the video memory in GB, or 0 if the catalog does not state it.
	MemoryGB int64
	// Secure and Community are the offers in the two clouds, per GPU and hour.
	Secure, Community Offer
	// Serverless is the price of a serverless worker, per GPU and hour.
	Serverless Price
}

// Offer is the offer of a GPU type in one cloud.
type Offer struct {
	// Offered reports whether the cloud offers the type.
	Offered bool
	// MaxCount is the highest number of GPUs of the type in one pod, or 0 if the catalog does not state it.
	MaxCount int64
	// Price is the price per GPU and hour.
	Price Price
}

// Price is an hourly list price that may be unknown.
type Price struct {
	// Known is false if the list has no price or an impossible one (zero, negative, not a number).
	Known bool
	// PerHour is the price of one unit per hour.
	PerHour Money
}

// CPU is a CPU flavour in the platform's catalog.
type CPU struct {
	// ID is the bare flavour, such as cpu5c.
	ID string
	// Name and Group are display names.
	Name, Group string
	// MinVCPU and MaxVCPU limit the number of vCPUs; 0 means that the catalog does not state it.
	MinVCPU, MaxVCPU int64
	// Secure and Serverless are the prices of pods and serverless workers, per vCPU and hour.
	Secure, Serverless Price
}
