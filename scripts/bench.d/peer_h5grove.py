"""h5grove's own FastAPI server. usage: peer_h5grove.py FOLDER PORT"""
import sys

import uvicorn
from fastapi import FastAPI
from h5grove.fastapi_utils import router, settings

settings.base_dir = sys.argv[1]
app = FastAPI()
app.include_router(router)
uvicorn.run(app, host='127.0.0.1', port=int(sys.argv[2]), log_level='critical')
