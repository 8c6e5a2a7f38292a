output "host" {
  description = "Host name of the data listeners inside the cluster."
  value       = "${helm_release.gateway.name}.${var.namespace}"
}

output "admin_host" {
  description = "Host name of the admin listeners inside the cluster, with one address per gateway."
  value       = "${helm_release.gateway.name}-admin.${var.namespace}"
}

output "secret" {
  description = "Name of the Secret."
  value       = kubernetes_secret_v1.environment.metadata[0].name
}
