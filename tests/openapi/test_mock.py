"""proto"""
import requests
def test_all(service, contract, operation):
    r = contract.document.example_request(operation)
    a = requests.request(operation.method, service.base_url + r.path, params=r.query, json=r.body, headers={"Authorization": "Bearer x"})
