"""The CDX server: HTTP requests in the dialects of several CDX servers -> lines of clusters.

request    -> endpoint, parameters        routes, parameters
endpoint   -> a question                  dialects/
question   -> lines                       collections, search/
lines      -> a response, in slices       app
"""
