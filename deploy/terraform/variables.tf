variable "name" {
  description = "Name of the release, of its Deployment and of its Service."
  type        = string
  default     = "tollgate"

  validation {
    # The chart appends "tollgate" to names without it.
    condition     = can(regex("^[a-z0-9-]*tollgate[a-z0-9-]*$", var.name)) && length(var.name) <= 53
    error_message = "The name must contain \"tollgate\" and have at most 53 lower-case letters, digits and hyphens."
  }
}

variable "namespace" {
  description = "Namespace, which must exist."
  type        = string
}

variable "chart" {
  description = "Path of the Helm chart. If null, that of this repository."
  type        = string
  default     = null
}

variable "image" {
  description = "Image of the gateway. A digest overrides the tag."
  type = object({
    repository = string
    tag        = optional(string, "")
    digest     = optional(string, "")
  })

  validation {
    condition     = var.image.tag != "" || var.image.digest != ""
    error_message = "The image must have a tag or a digest."
  }
}

variable "replicas" {
  description = "Gateways, at least."
  type        = number
  default     = 2

  validation {
    condition     = var.replicas >= 1
    error_message = "There must be at least one gateway."
  }
}

variable "max_replicas" {
  description = "Gateways, at most. They are scaled by their CPU use if this is greater than replicas."
  type        = number
  default     = 8
}

variable "config" {
  description = "The configuration, as in file(\"tollgate.yaml\"). It names secrets by environment variable ({env: NAME}) and holds none."
  type        = string
}

variable "redis_url" {
  description = "Address of Redis with its credentials: the environment variable REDIS_URL."
  type        = string
  sensitive   = true
}

variable "secrets" {
  description = "The other environment variables that the configuration refers to: platform keys, the admin token."
  type        = map(string)
  sensitive   = true
}

variable "values" {
  description = "Further values of the chart, as YAML documents. They override those of this module."
  type        = list(string)
  default     = []
}
